"""Columns of strings as dictionaries: the same values, and no dictionary that outlives its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from weft.kernel.columns.column import Column, coded, column, concatenated, plain, to_arrow
from weft.kernel.columns.keys import KeyEncoder

TEXTS = st.lists(st.one_of(st.none(), st.sampled_from("abc")), max_size=20)


def of(texts: list[str | None], as_codes: bool) -> Column:
    values = pa.array(texts, pa.string())
    return coded(values.dictionary_encode()) if as_codes else column(values)


@given(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=4), st.data())
def test_coded_columns_are_put_together_and_taken_as_others(
    parts: list[tuple[list[str | None], bool]], data: st.DataObject
) -> None:
    whole = concatenated([of(texts, as_codes) for texts, as_codes in parts])
    texts = [text for part, _ in parts for text in part]
    assert to_arrow(whole).to_pylist() == texts == to_arrow(plain(whole)).to_pylist()
    assert whole.type == to_arrow(whole).type == pa.string()
    places = data.draw(st.lists(st.integers(0, len(texts) - 1)) if texts else st.just([]))
    taken = whole.take(np.array(places, np.int64))
    assert to_arrow(taken).to_pylist() == [texts[place] for place in places]
    assert to_arrow(whole.take(slice(1, 3))).to_pylist() == texts[1:3]


@given(TEXTS, TEXTS)
def test_an_encoder_gives_a_dictionary_the_codes_of_its_strings(
    before: list[str | None], texts: list[str | None]
) -> None:
    values = pa.array(texts, pa.string())
    encoders = [KeyEncoder([pa.string()]) for _ in range(2)]
    codes = []
    for encoder, given_values in zip(encoders, (values, values.dictionary_encode()), strict=True):
        encoder.encode([pa.array(before, pa.string())])
        codes.append(encoder.encode([given_values]))
        assert encoder.decode(0, codes[-1]).to_pylist() == texts
    assert len(set(zip(*map(list, codes), strict=True))) == len(set(texts))


def test_a_dictionary_is_given_up_when_most_of_its_rows_are_gone() -> None:
    many = of([str(number % 10) for number in range(100)], as_codes=True)
    assert many.is_coded and many.take(np.arange(50)).is_coded
    few = many.take(np.arange(3))
    assert not few.is_coded
    assert to_arrow(few).to_pylist() == ["0", "1", "2"]
    assert not of([str(number) for number in range(100)], as_codes=True).is_coded
