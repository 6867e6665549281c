"""The search for settings of searches: by half of the queries, and judged by the other half."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest

from qkvsearch.evaluation import search_tuning
from qkvsearch.evaluation import tuning_queries as search_queries
from qkvsearch.evaluation.made_queries.halves import is_held_out, items_of
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.search_parts import PARTS, Parts
from qkvsearch.evaluation.search_tuning import (
    Asking,
    _compared,
    _halves,
    changed,
    tune_by_queries,
    tune_search,
)
from qkvsearch.evaluation.tuning_queries import (
    JUDGED,
    TuningQueries,
    TuningQuery,
    tuning_queries,
)
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.stored_models import StoredModels

ALL = frozenset(PARTS)
BETTER = {"families": 0.0}


def asked(kinds=("one", "two"), n=60, carried=ALL):
    """Queries of each kind, which ask for items of their own."""
    queries = [
        TuningQuery(kind, f"{kind} {item}", {item: 1}) for kind in kinds for item in range(n)
    ]
    return TuningQueries(queries, dict.fromkeys(kinds, carried))


@pytest.fixture
def figures(monkeypatch):
    """Sets the metric of each query by the settings that it is asked with."""

    def set_figures(figure):
        monkeypatch.setattr(
            Asking,
            "_figure",
            lambda self, build, query: figure(build.models.search_settings.to_dict(), query),
        )

    return set_figures


@pytest.fixture(scope="module")
def build(movies):
    return movies.current_build


def test_a_better_setting_is_found_and_is_better_on_the_held_out_half(build, figures, all_heads):
    # Worse for every tenth item, so that the difference has an interval.
    def figure(settings, query):
        gain = -0.1 if min(query.answers) % 10 == 0 else 0.4
        return 0.5 + gain * (settings.get("families") == 0)

    figures(figure)
    result = tune_by_queries(build, asked(), seed=1)
    assert result.settings == BETTER
    assert result.found == SearchSettings(families=0.0)
    assert result.worthwhile
    low, high = result.interval
    assert 0 < low < result.difference < high
    assert result.difference == pytest.approx(0.35, abs=0.06)
    assert result.held_out["tuned"] - result.held_out["in_use"] == pytest.approx(result.difference)
    n_held_out = sum(is_held_out(build, query) for query in asked(("one",)).queries)
    assert {name: row["queries"] for name, row in result.kinds.items()} == {
        "one": n_held_out,
        "two": n_held_out,
    }
    first, *others = result.trials
    assert (first.part, first.settings, first.gain) == ("", {}, 0)
    assert {trial.part for trial in others} == {"families", "heads", "columns"}


def test_what_is_better_on_one_half_alone_is_not_worthwhile(build, figures):
    queries = asked()
    found_on, _ = _halves(build, queries.queries, np.random.default_rng(1))
    lucky = {query.text for query in found_on}
    figures(lambda settings, query: 0.5 + 0.4 * (settings == BETTER and query.text in lucky))
    result = tune_by_queries(build, queries, seed=1)
    assert result.settings == BETTER
    assert result.found_on == pytest.approx({"in_use": 0.5, "tuned": 0.9})
    assert (result.difference, result.changed, result.worthwhile) == (0, 0, False)


def test_settings_that_a_kind_is_worse_by_are_not_worthwhile(build, figures):
    figures(lambda s, query: 0.5 + {"one": 0.4, "two": -0.1}[query.kind] * (s == BETTER))
    result = tune_by_queries(build, asked())
    assert result.interval[0] > 0
    assert result.worse == ["two"]
    assert not result.worthwhile


@pytest.mark.parametrize("n_lucky", [5, 6])
def test_a_few_items_tell_nothing(build, figures, n_lucky):
    queries = asked()
    found_on, held_out = _halves(build, queries.queries, np.random.default_rng(0))
    lucky = {query.item for query in found_on}
    lucky |= set(sorted({query.item for query in held_out})[:n_lucky])
    figures(lambda settings, query: 0.5 + 0.4 * (settings == BETTER and query.item in lucky))
    result = tune_by_queries(build, queries)
    assert result.changed == n_lucky
    assert result.interval[0] > 0
    assert result.worthwhile == (n_lucky >= search_tuning.MIN_CHANGED)


def test_a_part_is_tried_by_the_kinds_that_tell_about_it_alone(build, figures, all_heads):
    queries = TuningQueries(asked().queries, {"one": frozenset({"heads"}), "two": frozenset()})
    seen = set()
    figures(lambda settings, query: seen.add(query.kind) or 0.5 + 0.4 * (settings == BETTER))
    result = tune_by_queries(build, queries)
    assert seen == {"one"}
    assert {trial.part for trial in result.trials} == {"", "heads"}
    assert result.settings == {}
    assert any("words of a family" in reason for reason in result.left_out)


def test_kinds_that_are_found_already_tell_nothing(build, figures):
    figures(lambda s, query: {"one": 0.96, "two": 0.5}[query.kind] + 0.04 * (s == BETTER))
    result = tune_by_queries(build, asked())
    assert result.found_already == ["one"]
    assert [*result.kinds] == ["two"]
    assert result.settings == BETTER
    assert "one" in " ".join(result.notes)


def test_kinds_that_tell_nothing_must_not_be_worse_either(build, figures):
    figures(lambda s, query: {"one": 0.96, "two": 0.5}[query.kind] + 0.04 * (s == BETTER))
    assert tune_by_queries(build, asked()).worthwhile
    change = {"one": -0.2, "two": 0.04}
    figures(
        lambda s, query: {"one": 0.96, "two": 0.5}[query.kind] + change[query.kind] * (s == BETTER)
    )
    result = tune_by_queries(build, asked())
    assert ([*result.kinds], [*result.other_kinds]) == (["two"], ["one"])
    assert result.other_kinds["one"]["difference"] == pytest.approx(-0.2)
    assert result.worse == ["one"]
    assert not result.worthwhile


def test_too_few_queries_tell_nothing(build):
    result = tune_by_queries(build, asked(("one",), n=30))
    assert (result.settings, result.worthwhile, result.kinds) == ({}, False, {})
    (note,) = result.notes
    assert "30 queries" in note


def test_settings_in_use_are_where_the_search_begins(build, figures):
    in_use = SearchSettings(families=0.5)
    figures(lambda settings, query: 0.5 + 0.3 * (not settings))
    result = tune_by_queries(build.with_search(in_use), asked())
    assert result.in_use == {"families": 0.5}
    assert result.settings == {}
    assert result.worthwhile


def test_the_time_limit_holds(build, figures):
    def slow(settings, query):
        time.sleep(0.001)
        return 0.5 + 0.4 * (settings == BETTER)

    figures(slow)
    result = tune_by_queries(build, asked(), deadline=time.monotonic())
    assert result.out_of_time
    assert result.asked == 2 * search_tuning.MIN_QUERIES < result.queries == 120
    assert (result.settings, result.worthwhile) == ({}, False)
    assert len(result.trials) == 1


def test_an_item_is_in_one_half_alone_whichever_way_it_is_asked_for(build):
    queries = [TuningQuery("alike", f"{a} {b}", {b: 1}, a) for a, b in pairwise(range(0, 80, 2))]
    queries += [TuningQuery("alike", f"{b} {a}", {a: 1}, b) for a, b in pairwise(range(0, 80, 2))]
    halves = _halves(build, queries, np.random.default_rng(0))
    first, second = ({item for query in half for item in items_of(query)} for half in halves)
    assert not first & second
    assert min(map(len, halves)) > 10


def test_queries_about_items_of_both_halves_are_counted_and_said(build, figures):
    figures(lambda settings, query: 0.5)
    own = asked(("one",)).queries
    held_out = [query.item for query in own if is_held_out(build, query)]
    others = [query.item for query in own if not is_held_out(build, query)]
    both = [
        TuningQuery("one", f"{a} {b}", {a: 1, b: 1}) for a, b in zip(held_out, others, strict=False)
    ]
    result = tune_by_queries(build, TuningQueries([*own, *both], {"one": ALL}))
    assert result.in_neither == len(both)
    assert result.queries == result.asked == len(own)
    assert any(note.startswith(f"{len(both)} queries are") for note in result.notes)


def test_judged_queries_are_split_though_they_share_items(build):
    queries = [TuningQuery(JUDGED, f"query {n}", dict.fromkeys(range(20), 1)) for n in range(60)]
    first, second = _halves(build, queries, np.random.default_rng(0))
    assert len(first) + len(second) == 60
    assert min(len(first), len(second)) > 20


def test_what_too_few_held_out_queries_tell_of_is_named(build, figures):
    found_on, held_out = _halves(build, asked().queries, np.random.default_rng(0))
    few = [query._replace(kind="few") for query in [*found_on, *held_out[:5]]]
    queries = TuningQueries(
        [*few, *(query._replace(kind="many") for query in held_out)],
        {"few": ALL, "many": frozenset({"heads"})},
    )
    figures(lambda settings, query: 0.5 + 0.4 * (settings == BETTER))
    result = tune_by_queries(build, queries)
    assert any(trial.settings == BETTER and trial.gain > 0 for trial in result.trials)
    assert (result.settings, result.worthwhile) == ({}, False)
    assert "words of a family" in result.left_out[-1]
    assert "5 held-out" in result.left_out[-1]


def test_queries_of_one_item_count_as_one_in_the_interval():
    rng = np.random.default_rng(2)
    before, after = rng.random((2, 40))
    queries = [TuningQuery("one", str(item), {item: 1}) for item in range(40)]
    once = _compared(before, after, queries, 0)
    twice = _compared(np.tile(before, 2), np.tile(after, 2), queries * 2, 0)
    assert twice["interval"] == pytest.approx(once["interval"])
    assert twice["difference"] == pytest.approx((after - before).mean())


def test_only_heads_with_a_weight_have_one_to_try(build, monkeypatch):
    weights = {"lexical": 1.0, "lsa": 0.0, "contrastive": 0.0}
    monkeypatch.setattr(StoredModels, "head_weights", property(lambda self: dict(weights)))
    assert not [*Parts.of(build.models).tried("heads", SearchSettings())]


def test_a_weight_is_at_most_eight_times_what_the_build_chose_and_never_nothing(build, all_heads):
    parts = Parts.of(build.models)
    default = build.models.head_weights
    settings = SearchSettings()
    for _ in range(8):
        steps = [*parts.tried("heads", settings)]
        assert all(step.heads is None or min(step.heads.values()) > 0 for step in steps)
        assert all(step.heads is None or math.isclose(sum(step.heads.values()), 1, abs_tol=1e-3)
                   for step in steps)  # fmt: skip
        more = [step for step in steps if step.heads]
        settings = max(more, key=lambda step: step.heads["lexical"])
    ratios = [settings.heads[name] / default[name] for name in default]
    assert max(ratios) / min(ratios) == pytest.approx(8, rel=0.01)


def test_of_two_weights_to_double_one_is_to_halve_the_other(build):
    steps = [step.columns for step in Parts.of(build.models).tried("columns", SearchSettings())]
    assert len(steps) == 2
    assert steps[0] != steps[1]


def test_a_step_back_to_the_build_is_the_default(build, all_heads):
    parts = Parts.of(build.models)
    for part in ("heads", "columns", "families"):
        away = next(iter(parts.tried(part, SearchSettings())))
        assert changed(SearchSettings(), away) == {part}
        assert SearchSettings() in list(parts.tried(part, away))


def test_titles_tell_about_heads_alone_and_judgements_about_everything(build):
    title = build.catalog.names([3])[1][0]
    item = build.catalog.ids("items").texts[3]
    judged = ({"q": title}, {"q": {item: 2, "nowhere": 1}})
    queries, carried = tuning_queries(build, 0, judged)
    assert carried == {"words_among_alike": {"heads"}, JUDGED: ALL}
    assert queries[-1] == TuningQuery(JUDGED, title, {3: 2})


def test_on_long_texts_titles_tell_nothing_and_alike_items_about_columns(build, monkeypatch):
    monkeypatch.setattr(QueriedCatalog, "is_long", True)
    made = []
    monkeypatch.setattr(
        search_queries, "make_queries", lambda *_, only: [made.extend(sorted(only))][:0]
    )
    _, carried = tuning_queries(build, 0)
    assert carried == {
        "alike_by_sentence": {"families", "columns"},
        "alike_by_title": {"columns"},
    }
    assert made == sorted(carried)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_by_real_queries(build, monkeypatch):
    monkeypatch.setattr(search_queries, "MAX_QUERIES", 40)
    first, second = (tune_search(build, random_state=4).to_dict() for _ in range(2))
    assert first == second
    low, high = first["interval"]
    assert low <= first["difference"] <= high
