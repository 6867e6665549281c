"""What a log of searches says: which count, which queries need help, and how good a search is."""

import numpy as np
import pytest

import qkvsearch
from qkvsearch.errors import DataError, QkvError
from qkvsearch.evaluation.clicks import evaluated
from qkvsearch.evaluation.clicks.counted import counted_searches
from qkvsearch.evaluation.clicks.evaluated import evaluate_clicks
from qkvsearch.evaluation.clicks.position_bias import (
    MIN_CLICKS,
    PositionBias,
    fitted,
    position_bias,
)
from qkvsearch.evaluation.clicks.queries import query_rows
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.store.logged_searches import LoggedSearch, LoggedSearches
from qkvsearch.store.search_log import SearchLog
from qkvsearch.tables.ids import Ids


def log_of(*searches):
    """A log of searches: (visitor, seconds, query, more)."""
    made, clicks = [], {}
    for number, (visitor, seconds, query, *more) in enumerate(searches):
        given = {"total": 1, "shown": (), "clicks": {}, **(more[0] if more else {})}
        search = LoggedSearch(
            str(number),
            visitor,
            float(seconds),
            query,
            given["total"],
            given["shown"],
            given.get("offset", 0),
            given.get("typing", False),
            given.get("options", False),
            given.get("no_hits"),
        )
        made.append(search)
        clicks[search.id] = given["clicks"]
    return LoggedSearches(made, clicks)


def counted(*searches):
    return [search.query for search in counted_searches(log_of(*searches))]


class TestWhatCounts:
    def test_what_is_typed_on_the_way_does_not(self):
        assert counted(("a", 0, "ri"), ("a", 1, "riv"), ("a", 2, "river")) == ["river"]

    def test_nor_what_is_deleted_on_the_way(self):
        typed = [("a", n, query) for n, query in enumerate(["rivr", "riv", "rive", "river"])]
        assert counted(*typed) == ["river"]

    def test_the_same_words_again_are_another_search(self):
        assert counted(*[("a", 0, "tent")] * 3) == ["tent"] * 3

    def test_unless_they_were_sent_while_typing(self):
        assert counted(("a", 0, "tent", {"typing": True}), ("a", 1, "Tent ")) == ["Tent "]

    @pytest.mark.parametrize(
        "later",
        [("b", 1, "river"), ("a", 11, "river"), ("a", 1, "lake"), ("a", -1, "river")],
        ids=["another visitor", "too late", "other words", "a clock that went back"],
    )
    def test_others_replace_nothing(self, later):
        assert counted(("a", 0, "riv"), later) == ["riv", later[2]]

    def test_a_search_with_a_click_counts(self):
        assert counted(("a", 0, "tent", {"clicks": {"7": 1}}), ("a", 1, "tents")) == [
            "tent",
            "tents",
        ]

    def test_further_pages_and_empty_queries_do_not(self):
        assert counted(("a", 0, "tent"), ("a", 3, "tent", {"offset": 10}), ("a", 4, " ")) == [
            "tent"
        ]


def rows(*searches, titles=lambda ids: dict.fromkeys(ids, "T"), **options):
    return list(query_rows(log_of(*searches), titles, **options))


UNKNOWN = {"total": 0, "no_hits": {"reason": "unknown_words", "words": ["settee"]}}


class TestQueries:
    def test_the_most_frequent_come_first_however_they_are_written(self):
        found = rows(
            ("a", 0, "rope"), ("a", 20, "Red Tent"), ("b", 0, "red  tent"), ("c", 0, "red tent ")
        )
        assert [(row["query"], row["searches"]) for row in found][1] == ("rope", 1)
        assert found[0]["searches"] == 3

    def test_hits_are_those_of_the_last_time(self):
        (row,) = rows(("a", 0, "tent", {"total": 5}), ("b", 9, "tent", UNKNOWN))
        assert (row["total"], row["reason"], row["problem"]) == (0, "unknown_words", "no_hits")

    def test_a_filter_that_leaves_nothing_is_no_problem_of_words_that_had_hits(self):
        found = ("a", 0, "tent", {"total": 5})
        filtered = {"total": 0, "no_hits": {"reason": "filtered_out", "filter": ["brand:X"]}}
        (row,) = rows(found, ("b", 9, "tent", filtered))
        assert (row["searches"], row["total"], row["problem"]) == (2, 5, None)
        (row,) = rows(("b", 0, "tent", filtered))
        assert (row["total"], row["reason"], row["problem"]) == (0, "filtered_out", "no_hits")

    def test_filters_that_leave_nothing_lack_no_synonym(self):
        filtered = {"total": 0, "no_hits": {"reason": "filtered_out", "filter": ["brand:X"]}}
        searches = []
        for visitor in "abc":
            searches += [(visitor, 0, "tent", filtered), (visitor, 30, "stove")]
        row = {row["query"]: row for row in rows(*searches)}["tent"]
        assert row["next"] == [{"query": "stove", "searches": 3}]
        assert row["synonyms"] is None

    def test_who_asks_for_weak_hits_does_not_hide_why_there_are_no_others(self):
        (row,) = rows(("a", 0, "tent", UNKNOWN), ("a", 20, "tent", {"total": 0}))
        assert (row["total"], row["reason"]) == (0, "unknown_words")

    def test_clicks_on_further_pages_count_for_the_query(self):
        (row,) = rows(
            ("a", 0, "tent", {"clicks": {"7": 1}}),
            ("a", 5, "tent", {"offset": 10, "clicks": {"8": 11}}),
        )
        assert (row["searches"], row["clicks"], row["first_clicks"]) == (1, 2, 1)

    def test_nobody_clicks_on_the_first_three(self):
        lower = {"clicks": {"9": 4}}
        searches = [("a", 0, "tent", lower), ("b", 0, "tent", lower), ("c", 0, "tent")]
        (row,) = rows(*searches)
        assert (row["problem"], row["pin"]) == ("no_clicks", "tent=9")
        assert row["clicked"] == [{"id": "9", "title": "T", "clicks": 2}]
        assert rows(*searches[:2])[0]["problem"] is None, "two searches show nothing"
        third = [*searches, ("d", 0, "tent", {"clicks": {"9": 3}})]
        assert rows(*third)[0]["problem"] is None

    def test_an_item_that_is_gone_is_not_pinned(self):
        searches = [(v, 0, "tent", {"clicks": {"9": 4}}) for v in "abc"]
        (row,) = rows(*searches, titles=lambda ids: {})
        assert row["pin"] is None
        assert row["clicked"][0]["title"] is None

    def test_nothing_is_proposed_that_would_be_read_otherwise(self):
        """`rules add --pin a = b=9` pins an item `b=9`; a synonym has no comma."""
        searches = [(v, 0, "a = b", {"clicks": {"9": 4}}) for v in "abc"]
        assert rows(*searches)[0]["pin"] is None
        for typed in ("red settee, big", "red settee => sofa", "red #settee"):
            searches = []
            for visitor in "abc":
                searches += [(visitor, 0, typed, UNKNOWN), (visitor, 20, "red couch")]
            (row,) = (row for row in rows(*searches) if row["query"] == typed)
            assert (row["next"][0]["query"], row["synonyms"]) == ("red couch", None)

    def test_what_visitors_searched_for_next_is_a_synonym(self):
        searches = []
        for visitor in "abc":
            searches += [
                (visitor, 0, "red settee", UNKNOWN),
                (visitor, 30, "red sofa", {"clicks": {"5": 1}}),
            ]
        found = {row["query"]: row for row in rows(*searches)}
        assert found["red settee"]["next"] == [{"query": "red sofa", "searches": 3}]
        assert found["red settee"]["synonyms"] == "settee, sofa"
        assert found["red sofa"]["next"] == []

    @pytest.mark.parametrize(
        "then",
        [(121, "sofa", {}), (30, "sofa", UNKNOWN)],
        ids=["later", "without hits either"],
    )
    def test_others_are_not(self, then):
        seconds, query, more = then
        searches = []
        for visitor in "abc":
            searches += [(visitor, 0, "settee", UNKNOWN), (visitor, seconds, query, more)]
        found = {row["query"]: row for row in rows(*searches)}
        assert found["settee"]["next"] == []
        assert found["settee"]["synonyms"] is None

    def test_one_visitor_alone_proposes_nothing(self):
        found = rows(*[("a", 0, "settee", UNKNOWN), ("a", 30, "rope")] * 3)
        assert {row["query"]: row["synonyms"] for row in found}["settee"] is None

    @pytest.mark.parametrize("query", ["settee,tent", "settee#", "settee=>tent", "#settee"])
    def test_a_query_cannot_write_another_rule_of_synonyms(self, query):
        searches = []
        for visitor in "ab":
            searches += [(visitor, 0, query, UNKNOWN), (visitor, 30, "sofa")]
        found = {row["query"]: row for row in rows(*searches)}
        assert found[query]["next"] == [{"query": "sofa", "searches": 2}]
        assert found[query]["synonyms"] is None

    def test_a_query_cannot_pin_another_item(self):
        searches = [(v, 0, "tent=8,", {"clicks": {"9": 4}}) for v in "abc"]
        (row,) = rows(*searches)
        assert (row["problem"], row["pin"]) == ("no_clicks", None)

    def test_only_those_with_a_problem_by_pages(self):
        searches = [(v, 0, query, UNKNOWN) for query in ("x", "y", "z") for v in "ab"]
        searches.append(("a", 99, "tent"))
        log = log_of(*searches)
        page = query_rows(log, lambda ids: {}, only="no_hits", k=1, offset=1)
        assert ([row["query"] for row in page], page.total) == (["y"], 3)


# --- position bias ---

THETA = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.2, 0.15, 0.12, 0.1, 0.1])
N_ITEMS = 10


def simulated(n_searches, is_shuffled, random_state=0):
    """A log of readers who look at position p with THETA[p] and click on what is right, and how
    right each item is.
    """
    rng = np.random.default_rng(random_state)
    right = rng.uniform(0.1, 0.9, (4, N_ITEMS))
    searches = []
    for number in range(n_searches):
        query = number % len(right)
        order = rng.permutation(N_ITEMS) if is_shuffled else np.arange(N_ITEMS)
        is_clicked = rng.random(N_ITEMS) < THETA * right[query, order]
        clicks = {str(order[p]): p + 1 for p in np.flatnonzero(is_clicked)}
        shown = tuple(map(str, order))
        searches.append((f"v{number}", number, f"q{query}", {"shown": shown, "clicks": clicks}))
    return log_of(*searches), right


def test_theta_is_found_where_items_were_at_several_positions():
    log, _ = simulated(20_000, is_shuffled=True)
    bias = position_bias(log, log.searches)
    assert bias.theta == pytest.approx(THETA, abs=0.04)
    assert bias.n_pairs == 4 * N_ITEMS
    assert bias.weight(1) == 1
    assert bias.weight(3) == pytest.approx(2, abs=0.2)
    assert bias.weight(10) == bias.weight(500) <= 10


def test_no_click_counts_more_than_ten_times():
    bias = PositionBias(np.array([1.0, 0.5, 0.01]), 1, 100)
    assert [bias.weight(position) for position in (1, 2, 3, 99)] == [1, 2, 10, 10]


def test_nothing_is_estimated_where_each_item_was_at_one_position():
    log, _ = simulated(2_000, is_shuffled=False)
    bias = position_bias(log, log.searches)
    assert bias.theta is None
    assert (bias.n_pairs, bias.n_clicks, bias.weight(9)) == (0, 0, 1)


def test_nothing_is_estimated_from_few_clicks():
    log, _ = simulated(40, is_shuffled=True)
    bias = position_bias(log, log.searches)
    assert 0 < bias.n_clicks < MIN_CLICKS
    assert bias.theta is None


def test_a_position_that_nothing_compares_counts_as_the_one_before_it():
    # One item at the positions 1 and 2, and another one at 4 and 5.
    swapped = [("x", "a"), ("a", "x")]
    others = [("-", "-", "-", "b"), ("-", "-", "-", "-", "b")]
    searches = []
    for n in range(400):
        shown = [*swapped, *others][n % 4]
        clicks = {item: p + 1 for p, item in enumerate(shown) if item in "xab" and n % 3}
        shown = tuple(f"{item}{n if item == '-' else ''}" for item in shown)
        searches.append((f"v{n}", n, "q", {"shown": shown, "clicks": clicks}))
    log = log_of(*searches)
    theta = position_bias(log, log.searches).theta
    assert theta[2:].tolist() == [theta[1]] * 8


def test_the_estimate_is_the_most_likely_one():
    rng = np.random.default_rng(3)
    shown = rng.integers(0, 50, (8, 4)).astype(float)
    clicked = rng.poisson(shown * 0.3 * np.array([1, 0.6, 0.4, 0.2]))

    def likelihood(theta):
        right = clicked.sum(axis=1) / (shown @ theta)
        means = shown * np.outer(right, theta)
        is_shown = shown > 0
        return (clicked[is_shown] * np.log(means[is_shown]) - means[is_shown]).sum()

    theta = fitted(shown, clicked)
    for place in range(1, 4):
        for factor in (0.97, 1.03):
            other = theta.copy()
            other[place] *= factor
            assert likelihood(other) < likelihood(theta)


# --- evaluation by clicks ---


def orders(right):
    """A search that has the best items first, and one that is as the log was, by item numbers."""
    best = {f"q{n}": np.argsort(-row) for n, row in enumerate(right)}
    return {
        "qkvsearch": lambda query, k: best[query][:k].tolist(),
        "lexical": lambda query, k: list(range(N_ITEMS))[:k],
    }


ITEMS = Ids([str(n) for n in range(N_ITEMS)])


def test_the_correction_brings_figures_near_to_those_without_bias():
    rng = np.random.default_rng(1)
    right = rng.uniform(0.1, 0.9, (4, N_ITEMS))
    # Mostly in the order of the items, sometimes in another: what logs are like.
    searches = []
    for number in range(20_000):
        query = number % 4
        order = np.arange(N_ITEMS) if rng.random() < 0.8 else rng.permutation(N_ITEMS)
        is_clicked = rng.random(N_ITEMS) < THETA * right[query, order]
        clicks = {str(order[p]): p + 1 for p in np.flatnonzero(is_clicked)}
        more = {"shown": tuple(map(str, order)), "clicks": clicks}
        searches.append((f"v{number}", number, f"q{query}", more))
    systems = orders(right)
    result = evaluate_clicks(log_of(*searches), systems, ITEMS)
    # Without bias each item has clicks in proportion to how right it is.
    truth = np.mean(
        [
            np.average(
                [
                    ndcg(list(map(str, systems["qkvsearch"](f"q{q}", 10))), {str(i): 1})
                    for i in range(N_ITEMS)
                ],
                weights=row,
            )
            for q, row in enumerate(right)
        ]
    )
    error = abs(result.metrics["ndcg@10"] - truth)
    assert error < 0.02
    assert abs(result.uncorrected["ndcg@10"] - truth) > 3 * error
    assert "is corrected" in result.sentences()[0]


def test_one_click_is_a_judged_query():
    log = log_of(("v", 0, "q", {"shown": ("3", "1"), "clicks": {"1": 2}}))
    search = {"qkvsearch": lambda query, k: [4, 1, 3], "lexical": lambda query, k: [3]}
    result = evaluate_clicks(log, search, ITEMS)
    assert result.metrics == pytest.approx(
        {"ndcg@10": 1 / np.log2(3), "mrr@10": 0.5, "recall@100": 1}
    )
    assert set(result.baselines["lexical"].values()) == {0.0}
    assert result.uncorrected == {}
    assert "not corrected" in result.to_dict()["limits"][0]
    assert "1 click is few" in " ".join(result.notes)


def test_the_position_is_that_of_the_answer_not_what_a_client_says():
    log = log_of(("v", 0, "q", {"shown": ("3", "1"), "clicks": {"1": 900, "77": 900}}))
    assert [click.position for click in evaluated.clicked_items(log)] == [2, 900]


def test_clicks_on_items_that_are_gone_are_left_out_and_counted():
    log = log_of(("v", 0, "q", {"clicks": {"1": 1, "gone": 2}, "options": True}))
    search = {"qkvsearch": lambda query, k: [1]}
    result = evaluate_clicks(log, search, ITEMS)
    assert (result.facts["clicks"], result.facts["clicks_on_other_items"]) == (1, 1)
    assert result.facts["clicks_with_options"] == 1
    with pytest.raises(DataError, match="any more"):
        evaluate_clicks(log_of(("v", 0, "q", {"clicks": {"gone": 1}})), search, ITEMS)


class TestEngine:
    def test_a_log_of_a_workspace_is_listed_and_measured(self, shop_copy):
        with qkvsearch.open(shop_copy) as engine:
            assert list(engine.searches()) == []
            with pytest.raises(QkvError, match="no clicks"):
                engine.evaluate_search(from_clicks=True)
            title = engine.items.list(k=1)[0]["title"]
            hit = engine.search(title)[0]
            log = SearchLog(shop_copy, 30, print)
            query_id = log.add_search("v", title, total=1, shown=[hit.id])
            log.add_click(query_id, hit.id, 1)
            (row,) = engine.searches()
            assert (row["query"], row["clicks"]) == (title, 1)
            assert row["clicked"][0]["title"] == hit.title
            result = engine.evaluate_search(from_clicks=True)
            assert result.metrics["mrr@10"] == 1
            assert set(result.baselines) == {"lexical"}
            assert engine.evaluate_search(from_clicks=True, heads="lexical").baselines == {}

    def test_clicks_and_judgements_exclude_each_other(self, shop):
        with pytest.raises(QkvError, match="`from_clicks`"):
            shop.evaluate_search({"q": "x"}, {"q": {"1": 1}}, from_clicks=True)

    def test_another_problem_is_refused_by_name(self, shop):
        with pytest.raises(QkvError, match=r"`only`.*no_hits"):
            shop.searches(only="nonsense")
