"""The parts of a score as arrays: the same parts, and few of them that add up to all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.scores.components import MAX_LISTED, Components, PartSource, ScoreComponent

values = st.floats(-100, 100, allow_nan=False)
labels = st.sampled_from(["sea", "deep", None])
drawn = st.lists(
    st.builds(ScoreComponent, st.sampled_from("abc"), labels, labels, values, st.none()),
    max_size=60,
)


def total(parts):
    return sum(part.value for part in parts)


@given(drawn, st.integers(1, 8))
def test_few_parts_and_the_others_add_up_to_all(parts, n):
    listed = Components.of(parts).listed(n)
    assert len(listed) == min(len(parts), n + 1)
    assert total(listed) == pytest.approx(total(parts), abs=1e-9 * (1 + len(parts) * 100))
    sizes = sorted((abs(part.value) for part in parts), reverse=True)
    if len(parts) > n + 1:
        *listed, others = listed
        assert others[:3] == ("all", "others", f"{len(parts) - n} parts")
    assert [abs(part.value) for part in listed] == sizes[: len(listed)]


@given(drawn, drawn, values)
def test_arrays_hold_the_same_parts(first, second, factor):
    joined = Components.joined([Components.of(first), Components.of(second).scaled(factor)])
    assert list(joined) == [
        *first,
        *(part._replace(value=part.value * factor) for part in second),
    ]
    assert joined.sums.tolist() == [part.value for part in joined]


def test_pairs_are_what_each_source_adds_with_each_key():
    sources = [PartSource("h", "sea"), PartSource("h", "deep", "item")]
    made = np.arange(6.0).reshape(2, 3)
    parts = Components.joined(
        [
            Components.of([ScoreComponent("g", None, None, 9.0)]),
            Components.pairs(sources, "xyz", made),
        ]
    )
    assert list(parts)[1:] == [
        ScoreComponent("h", "sea", "x", 0.0),
        ScoreComponent("h", "sea", "y", 1.0),
        ScoreComponent("h", "sea", "z", 2.0),
        ScoreComponent("h", "deep", "x", 3.0, "item"),
        ScoreComponent("h", "deep", "y", 4.0, "item"),
        ScoreComponent("h", "deep", "z", 5.0, "item"),
    ]
    assert parts.sums.tolist() == [9.0, 3.0, 12.0]
    keys, table = parts.table([2, 1])
    assert keys == list("xyz")
    np.testing.assert_array_equal(table, made[::-1])


def test_a_long_query_and_a_long_item_are_few_parts():
    n = 400
    sources = [PartSource("h", f"q{i}") for i in range(n)]
    made = np.random.default_rng(0).normal(size=(n, n))
    listed = Components.pairs(sources, [f"k{i}" for i in range(n)], made).listed()
    assert len(listed) == MAX_LISTED + 1
    assert total(listed) == pytest.approx(made.sum())
