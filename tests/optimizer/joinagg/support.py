"""Costs of operators, as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from weft.optimizer.joinagg.generic_cost import InputCosts, JoinCosts

positive = st.floats(0.01, 100)


@st.composite
def any_costs(draw: st.DrawFn, inputs: tuple[int, int] = (2, 5)) -> JoinCosts:
    """Costs of operators that no model needs to have made."""
    given_inputs = []
    for _ in range(draw(st.integers(*inputs))):
        rows = draw(positive)
        given_inputs.append(
            InputCosts(
                rate=draw(positive),
                update_window=draw(positive),
                update_set=draw(positive),
                find_rows=draw(positive),
                find_groups=draw(positive),
                matching_rows=rows,
                matching_groups=rows * draw(st.floats(0.01, 1)),
            )
        )
    return JoinCosts(tuple(given_inputs), draw(positive))
