"""Rankings: what the mask hides, what the weights are a softmax of, what the records hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.rank.ranking import MAX_HITS, rank
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores

scores = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12)


def names(positions):
    return [f"i{position}" for position in positions], [f"Item {i}" for i in positions]


def head_of(values, covered=None):
    array = np.array(values, dtype=np.float32)

    def parts(position):
        score = float(array[position])
        return Components.of(
            [
                ScoreComponent("h", "small", 0, score - 60),
                ScoreComponent("h", "large", 0, 70.0),
                ScoreComponent("h", 0, 0, -10),
            ]
        )

    return Scores("h", array, parts, None if covered is None else np.array(covered, dtype=bool))


@given(scores, st.integers(0, 15), st.floats(0.1, 9), st.randoms())
def test_weights_are_the_softmax_over_what_is_allowed(values, k, temperature, random):
    mask = np.array([random.random() < 0.6 for _ in values], dtype=bool)
    covered = np.array([random.random() < 0.8 for _ in values], dtype=bool)
    allowed = mask & covered
    ranking = rank(head_of(values, covered), names, k=k, temperature=temperature, mask=mask)
    powers = np.where(allowed, np.exp((np.array(values) - max(values)) / temperature), 0)
    assert len(ranking) == min(k, allowed.sum())
    assert ranking.n_candidates == allowed.sum()
    for hit, position in zip(ranking, ranking.positions, strict=True):
        assert allowed[position]
        assert hit.id == f"i{position}"
        if powers.sum() > 1e-20:
            assert hit.weight == pytest.approx(powers[position] / powers.sum(), abs=1e-4)
    assert sum(hit.weight for hit in ranking) <= 1 + 1e-5
    if allowed.any() and k >= len(values):
        assert sum(hit.weight for hit in ranking) == pytest.approx(1, abs=1e-5)


@given(scores)
def test_ranks_count_from_one_and_scores_never_rise(values):
    ranking = rank(head_of(values), names, k=len(values))
    assert [hit.rank for hit in ranking] == list(range(1, len(values) + 1))
    ordered = [hit.score for hit in ranking]
    assert ordered == sorted(ordered, reverse=True)
    assert sorted(hit.title for hit in ranking) == sorted(f"Item {i}" for i in range(len(values)))


def test_temperature_is_by_default_one_standard_deviation():
    assert rank(head_of([1, 2, 3]), names, k=1).temperature == pytest.approx((2 / 3) ** 0.5)


def test_equal_scores_share_the_weight_equally():
    ranking = rank(head_of([2, 2, 2, 2]), names, k=4)
    assert ranking.temperature == 1
    assert [hit.weight for hit in ranking] == [0.25] * 4
    assert [hit.id for hit in ranking] == ["i0", "i1", "i2", "i3"]


def test_no_head_gives_no_hits():
    ranking = rank(None, names, k=5)
    assert list(ranking) == []
    assert ranking.n_candidates == 0
    assert ranking.to_records() == []
    assert len(ranking.to_frame()) == 0


def test_k_of_zero_gives_no_hits_and_still_counts_the_candidates():
    ranking = rank(head_of([1, 2]), names, k=0)
    assert len(ranking) == 0
    assert ranking.n_candidates == 2


def test_explain_lists_the_largest_part_first_and_adds_up():
    ranking = rank(head_of([1, 5]), names, k=2)
    parts = ranking.explain(0)
    assert [part.query for part in parts] == ["large", "small", 0]
    assert sum(part.value for part in parts) == pytest.approx(ranking[0].score, abs=1e-4)


def test_explain_lists_all_parts_where_that_is_asked_for():
    parts = Components.of(ScoreComponent("h", i, 0, 1.0 + i) for i in range(30))
    ranking = rank(Scores("h", np.array([465.0], np.float32), lambda _: parts), names, k=1)
    assert [part.query for part in ranking.explain(0)] == [*range(29, 9, -1), "others"]
    assert sorted(ranking.explain(0, full=True)) == list(parts)
    (row,), (full,) = ranking.explained_records(), ranking.explained_records(full=True)
    assert len(row["parts"]) == 21
    assert len(full["parts"]) == 30
    assert sum(part["value"] for part in row["parts"]) == pytest.approx(465)


def test_annotated_fills_one_field_of_each_hit_and_changes_nothing_else():
    ranking = rank(head_of([1, 5]), names, k=2)
    rated = ranking.annotated(predicted_rating=[4.5, 3.0])
    assert [hit.predicted_rating for hit in rated] == [4.5, 3.0]
    assert [hit.id for hit in rated] == [hit.id for hit in ranking]
    assert ranking[0].predicted_rating is None


# --- as it shows itself ---


def titled(*titles):
    return lambda positions: (list(range(len(positions))), [titles[i] for i in positions])


def test_a_ranking_shows_itself_as_lines_and_as_a_table():
    ranking = rank(head_of([1.0, 3.0, 2.0]), names, k=2).annotated(match=["strong", "weak"])
    assert repr(ranking).splitlines() == [
        "Ranking: 2 hits of 3 candidates",
        "   1    3.0000  strong  Item 1 (i1)",
        "   2    2.0000  weak    Item 2 (i2)",
    ]
    page = ranking._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") == 3
    assert "<td>weak</td><td>2.0000</td>" in page
    assert "h +3.0000 = 3.0000" in page


def test_titles_are_escaped_in_the_table_and_harmless_in_a_terminal():
    ranking = rank(head_of([2.0, 1.0]), titled("<script>x</script>", "a\x1b[2J\x9bb"), k=2)
    page = ranking._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    for shown in (page, repr(ranking)):
        assert "\x1b" not in shown
        assert "\x9b" not in shown


def test_the_reasons_of_the_table_are_the_largest():
    ranking = rank(head_of([0.5]), names, k=1)
    because = [{"title": f"film {x}", "contribution": x} for x in (0.1, -0.9, 0.3, 0.8, 0.2)]
    page = ranking.annotated(because=[because])._repr_html_()
    largest = "film -0.9 -0.9000, film 0.8 +0.8000, film 0.3 +0.3000"
    assert f"{largest}, 2 others +0.3000 = 0.5000</td>" in page
    page = ranking.annotated(matches=[{"title": ["deep", "sea"]}])._repr_html_()
    assert "title: deep, sea" in page


def test_an_empty_ranking_and_a_long_one_show_themselves_too():
    assert "<table>" in rank(None, names, k=3)._repr_html_()
    assert repr(rank(None, names, k=3)) == "Ranking: 0 hits of 0 candidates"
    long = rank(head_of(np.arange(90.0)), names, k=90)
    assert len(repr(long).splitlines()) == MAX_HITS + 2
    assert repr(long).endswith("…")
    assert long._repr_html_().count("<tr>") == MAX_HITS + 1
