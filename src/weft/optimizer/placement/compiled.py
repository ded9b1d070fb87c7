"""The compiled loops of placement: edge rates of trees, and the search of `balanced`.

All loops are in this one file, since numba keeps compiled code by the file of the loop alone and
would not notice a change in another. Inputs are arrays; `edges.edge_atoms` says what atoms, families and chances
are; `growing_trees`, `placement`, `papers.to_nodes` and `balanced` call these loops and say what they are for.
Letters stand for numbers throughout: i, j items, a, b trees, n, m their nodes, e edge sets, f families, g atoms, k
whatever a short loop runs over.
"""

from __future__ import annotations

import numba
import numpy as np

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers


@numba.njit(cache=True)
def fill_rates(
    members: Integers,
    begins: Integers,
    atoms: Integers,
    family: Integers,
    chances: Floats,
    weights: Floats,
    single: Floats,
    plus: Floats,
    minus: Floats,
) -> float:
    """The edge rate of a tree; `plus` and `minus` become the rates with and without each edge set.

    `members` counts the items of each edge set. Where `plus` is empty, only the rate is counted.
    """
    sets = len(members)
    present = 0
    last = 0
    for e in range(sets):
        if members[e] > 0:
            present += 1
            last = e
    if present == 0:
        for e in range(len(plus)):
            plus[e] = single[e]
        return 0.0
    if present == 1 and len(plus) == 0:
        return float(single[last])
    covered = np.zeros((len(chances), len(weights)), dtype=np.int32)
    missed = weights.copy()
    for e in range(sets):
        if members[e] > 0:
            f = family[e]
            for k in range(begins[e], begins[e + 1]):
                covered[f, atoms[k]] += 1
    for f in range(1, len(chances)):
        left = 1.0 - chances[f]
        for g in range(len(weights)):
            if covered[f, g] > 0:
                missed[g] *= left
    rate = 0.0
    for g in range(len(weights)):
        rate += weights[g] if covered[0, g] > 0 else weights[g] - missed[g]
    if present == 1:
        rate = single[last]
    for e in range(len(plus)):
        f = family[e]
        change = 0.0
        if members[e] == 0:
            for k in range(begins[e], begins[e + 1]):
                g = atoms[k]
                if covered[0, g] == 0 and covered[f, g] == 0:
                    change += missed[g]
            plus[e] = rate + change * chances[f]
            minus[e] = rate
            continue
        plus[e] = rate
        if present == 1:
            minus[e] = 0.0
        elif f == 0:
            for k in range(begins[e], begins[e + 1]):
                if covered[0, atoms[k]] == 1:
                    change += missed[atoms[k]]
            minus[e] = rate - change
        else:
            for k in range(begins[e], begins[e + 1]):
                g = atoms[k]
                if covered[0, g] == 0 and covered[f, g] == 1:
                    change += missed[g]
            minus[e] = rate - change * chances[f] / (1.0 - chances[f])
    return float(rate)


@numba.njit(cache=True)
def rates_of_trees(
    order: Integers,
    tree_of: Integers,
    edge_set: Integers,
    trees: int,
    begins: Integers,
    atoms: Integers,
    family: Integers,
    chances: Floats,
    weights: Floats,
    single: Floats,
) -> Floats:
    """The edge rate of every tree; `order` has the items by their trees."""
    rates = np.zeros(trees)
    covered = np.zeros((len(chances), len(weights)), dtype=np.bool_)
    missed = weights.copy()
    low = 0
    while low < len(order):
        tree = tree_of[order[low]]
        high = low
        same = True
        while high < len(order) and tree_of[order[high]] == tree:
            same = same and edge_set[order[high]] == edge_set[order[low]]
            high += 1
        if same:
            rates[tree] = single[edge_set[order[low]]]
            low = high
            continue
        rate = 0.0
        for turn in range(2):
            # The second turn takes back what the first has marked.
            for i in range(low, high):
                e = edge_set[order[i]]
                f = family[e]
                for k in range(begins[e], begins[e + 1]):
                    g = atoms[k]
                    if turn == 1:
                        covered[f, g] = False
                        missed[g] = weights[g]
                    elif not covered[f, g]:
                        covered[f, g] = True
                        rate += missed[g] * chances[f]
                        missed[g] -= missed[g] * chances[f]
        rates[tree] = rate
        low = high
    return rates


@numba.njit(cache=True)
def union_rates(
    members: Integers,
    trees: Integers,
    tree: int,
    begins: Integers,
    atoms: Integers,
    family: Integers,
    chances: Floats,
    weights: Floats,
) -> Floats:
    """The edge rates of one tree together with each of `trees`; `members` has a row for each."""
    covered = np.zeros((len(chances), len(weights)), dtype=np.int64)
    missed = np.empty(len(weights))
    base = weights.copy()
    total = 0.0
    sets = members.shape[1]
    for e in range(sets):
        if members[tree, e] > 0:
            f = family[e]
            for k in range(begins[e], begins[e + 1]):
                g = atoms[k]
                if covered[f, g] == 0:
                    covered[f, g] = 1
                    total += base[g] * chances[f]
                    base[g] -= base[g] * chances[f]
    rates = np.empty(len(trees))
    for place in range(len(trees)):
        other = trees[place]
        rate = total
        mark = place + 2
        missed[:] = base
        for e in range(sets):
            if members[other, e] > 0 and members[tree, e] == 0:
                f = family[e]
                for k in range(begins[e], begins[e + 1]):
                    g = atoms[k]
                    if covered[f, g] != 1 and covered[f, g] != mark:
                        covered[f, g] = mark
                        rate += missed[g] * chances[f]
                        missed[g] -= missed[g] * chances[f]
        rates[place] = rate
    return rates


@numba.njit(cache=True)
def anneal(
    tree_of: Integers,
    node_of: Integers,
    edge_set: Integers,
    overlap: Floats,
    node_weights: Floats,
    price: float,
    balance: float,
    power: int,
    seed: int,
    proposals: int,
    hot: float,
    cold: float,
    begins: Integers,
    atoms: Integers,
    family: Integers,
    chances: Floats,
    weights: Floats,
    single: Floats,
) -> None:
    """Simulated annealing on `tree_of` (of items) and `node_of` (of tree slots, -1 if unused), in place."""
    np.random.seed(seed)
    items, sets, slots, nodes = len(edge_set), len(begins) - 1, len(node_of), len(node_weights)
    count = np.zeros((slots, sets), dtype=np.int64)
    cell = np.zeros((slots, sets))
    omega, rate, cost, load = np.zeros(slots), np.zeros(slots), np.zeros(slots), np.zeros(nodes)
    size = np.zeros(slots, dtype=np.int64)
    plus, minus = np.zeros((slots, sets)), np.zeros((slots, sets))
    none = np.zeros(0)
    both = np.zeros(sets, dtype=np.int64)
    picked = np.zeros(items, dtype=np.bool_)
    for i in range(items):
        t = tree_of[i]
        count[t, edge_set[i]] += 1
        cell[t, edge_set[i]] += overlap[i]
        omega[t] += overlap[i]
        size[t] += 1
    live = np.zeros(slots, dtype=np.int64)
    alive = 0
    for t in range(slots):
        if size[t] > 0:
            live[alive] = t
            alive += 1
            rate[t] = fill_rates(
                count[t], begins, atoms, family, chances, weights, single, plus[t], minus[t]
            )
            cost[t] = price + rate[t] * omega[t]
            load[node_of[t]] += cost[t] / node_weights[node_of[t]]
    capacity = node_weights.sum()
    scale = load.max()
    energy = 0.0
    total = 0.0
    powers = 0.0
    cooling = (cold / hot) ** (1.0 / max(1, proposals))
    heat = hot / cooling
    for turn in range(proposals):
        heat *= cooling
        if turn % 4096 == 0:
            # Sums are taken anew, so that rounding does not add up.
            total, powers = 0.0, 0.0
            load[:] = 0.0
            for k in range(alive):
                t = live[k]
                total += cost[t]
                load[node_of[t]] += cost[t] / node_weights[node_of[t]]
            for n in range(nodes):
                powers += (load[n] / scale) ** power
            energy = (1 - balance) * total / capacity + balance * scale * powers ** (1.0 / power)
        # What is tried: items of one edge set (one, or all of a tree), a whole tree, or a swap.
        kind = np.random.random()
        i = np.random.randint(items)
        a = tree_of[i]
        e = edge_set[i]
        n = node_of[a]
        j = -1
        whole = False
        split = False
        taken = overlap[i]
        number = 1
        if kind < 0.08:
            # A tree goes to another node as it is.
            m = np.random.randint(nodes)
            if m == n:
                continue
            b = -1
            new_a, new_b = 0.0, cost[a]
            rate_a, rate_b = 0.0, rate[a]
            whole = True
        elif kind < 0.14:
            # A tree is merged with another.
            b = live[np.random.randint(alive)]
            if b == a:
                continue
            m = node_of[b]
            for k in range(sets):
                both[k] = count[a, k] + count[b, k]
            rate_a = 0.0
            rate_b = fill_rates(both, begins, atoms, family, chances, weights, single, none, none)
            new_a = 0.0
            new_b = price + rate_b * (omega[a] + omega[b])
            whole = True
        elif kind < 0.18:
            # A tree is split: about half of its edge sets, or of its items, go to a new one.
            if alive == slots or size[a] < 2:
                continue
            m = np.random.randint(nodes)
            b = -1
            split = True
            part = 0.2 + 0.6 * np.random.random()
            by_set = np.random.random() < 0.6
            ordered = np.random.random() < 0.5
            number, taken = 0, 0.0
            both[:] = 0
            for k in range(sets):
                if by_set and count[a, k] > 0:
                    chosen = k > part * sets if ordered else np.random.random() < part
                    if chosen:
                        both[k] = count[a, k]
            for k in range(items):
                picked[k] = False
                if tree_of[k] == a:
                    if by_set:
                        picked[k] = both[edge_set[k]] > 0
                    else:
                        picked[k] = np.random.random() < part
                        if picked[k]:
                            both[edge_set[k]] += 1
                    if picked[k]:
                        number += 1
                        taken += overlap[k]
            if number == 0 or number == size[a]:
                continue
            rate_b = fill_rates(both, begins, atoms, family, chances, weights, single, none, none)
            for k in range(sets):
                both[k] = count[a, k] - both[k]
            rate_a = fill_rates(both, begins, atoms, family, chances, weights, single, none, none)
            new_a = price + rate_a * (omega[a] - taken)
            new_b = price + rate_b * taken
        elif kind < 0.38:
            # Two items change places, where both trees keep their edge sets.
            j = np.random.randint(items)
            b = tree_of[j]
            if b == a:
                continue
            other = edge_set[j]
            if other != e and (count[a, e] < 2 or count[b, other] < 2):
                continue
            m = node_of[b]
            rate_a = plus[a, other]
            rate_b = plus[b, e]
            new_a = price + rate_a * (omega[a] - taken + overlap[j])
            new_b = price + rate_b * (omega[b] + taken - overlap[j])
        else:
            # An item, or all of its edge set in its tree, goes to another tree or a new one.
            if kind > 0.85:
                number = count[a, e]
                taken = cell[a, e]
            if np.random.random() < 0.06:
                if alive == slots:
                    continue
                b = -1
                m = np.random.randint(nodes)
                rate_b = single[e]
                new_b = price + rate_b * taken
            else:
                b = live[np.random.randint(alive)]
                if b == a:
                    continue
                m = node_of[b]
                rate_b = plus[b, e]
                new_b = price + rate_b * (omega[b] + taken)
            if number == size[a]:
                rate_a, new_a = 0.0, 0.0
            else:
                rate_a = minus[a, e] if count[a, e] == number else rate[a]
                new_a = price + rate_a * (omega[a] - taken)
        change_a = new_a - cost[a]
        change_b = new_b - (cost[b] if b >= 0 else 0.0)
        new_total = total + change_a + change_b
        if m == n:
            load_n = load[n] + (change_a + change_b) / node_weights[n]
            new_powers = powers - (load[n] / scale) ** power + (load_n / scale) ** power
            load_m = load_n
        else:
            load_n = load[n] + change_a / node_weights[n]
            load_m = load[m] + change_b / node_weights[m]
            new_powers = powers - (load[n] / scale) ** power + (load_n / scale) ** power
            new_powers += (load_m / scale) ** power - (load[m] / scale) ** power
        new_energy = (1 - balance) * new_total / capacity
        new_energy += balance * scale * max(new_powers, 0.0) ** (1.0 / power)
        worse = new_energy - energy
        if worse > 0 and np.random.random() >= np.exp(-worse / (heat * energy)):
            continue
        total, powers, energy = new_total, max(new_powers, 0.0), new_energy
        load[n] = load_n
        load[m] = load_m
        if whole and b < 0:
            node_of[a] = m
            continue
        fresh = b < 0
        if fresh:
            b = 0
            while size[b] > 0:
                b += 1
            node_of[b] = m
            omega[b] = 0.0
            live[alive] = b
            alive += 1
        same_sets = not fresh and not whole and not split
        if j >= 0:
            other = edge_set[j]
            same_sets = same_sets and count[a, other] > 0 and count[b, e] > 0
            _shift(i, e, overlap[i], a, b, tree_of, count, cell, omega, size)
            _shift(j, other, overlap[j], b, a, tree_of, count, cell, omega, size)
        elif whole or split or number > 1:
            for k in range(items):
                if tree_of[k] == a and (
                    whole or (split and picked[k]) or (not split and edge_set[k] == e)
                ):
                    _shift(k, edge_set[k], overlap[k], a, b, tree_of, count, cell, omega, size)
            same_sets = False
        else:
            same_sets = same_sets and count[a, e] > 1 and count[b, e] > 0
            _shift(i, e, overlap[i], a, b, tree_of, count, cell, omega, size)
        cost[a], cost[b] = new_a, new_b
        if size[a] == 0:
            node_of[a] = -1
            for k in range(alive):
                if live[k] == a:
                    live[k] = live[alive - 1]
                    alive -= 1
                    break
            cost[a], omega[a], rate[a] = 0.0, 0.0, 0.0
        elif not same_sets:
            rate[a] = fill_rates(
                count[a], begins, atoms, family, chances, weights, single, plus[a], minus[a]
            )
        if not same_sets:
            rate[b] = fill_rates(
                count[b], begins, atoms, family, chances, weights, single, plus[b], minus[b]
            )


@numba.njit(cache=True)
def _shift(
    item: int,
    e: int,
    taken: float,
    a: int,
    b: int,
    tree_of: Integers,
    count: Integers,
    cell: Floats,
    omega: Floats,
    size: Integers,
) -> None:
    """Item `item` goes from tree a to tree b."""
    tree_of[item] = b
    count[a, e] -= 1
    count[b, e] += 1
    cell[a, e] -= taken
    cell[b, e] += taken
    omega[a] -= taken
    omega[b] += taken
    size[a] -= 1
    size[b] += 1
