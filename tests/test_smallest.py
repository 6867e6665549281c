"""What would have to be gone: the smallest set without which a hit is not among the first k."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.rank.removed_items import Losses
from qkvsearch.rank.smallest import SmallestSets

# What a recommendation may be asked with beside it.
OPTIONS = {
    "the first alone": {"k": 1},
    "a page": {"k": 2, "offset": 1},
    "by neighbours": {"k": 1, "heads": "neighbours"},
    "by embeddings": {"k": 2, "heads": "collaborative"},
    "recent": {"k": 1, "recent": 3},
    "damped": {"k": 2, "damping": 0.5},
    "diverse": {"k": 1, "diversity": 0.4},
    "seen": {"k": 2, "seen": True, "where": "year >= 2000"},
    "of a kind": {"k": 2, "distinct": "year"},
    "a condition": {"k": 2, "where": "year < 1990"},
    "without one": {"k": 1, "without": ["Zodiac"]},
    "and a like": {"k": 1, "likes": ["Heat"]},
    "and ratings": {"k": 1, "ratings": {"Alien": 5, "Up": 1}},
}


def is_there(engine, hit, asked, gone):
    """Whether a hit is among the first k where these items are neither liked nor candidates."""
    first = {"k": asked["k"] + asked.get("offset", 0), "offset": 0}
    without = [*asked.get("without", ()), *gone]
    found = engine.recommend(**{**asked, **first, "without": without, "exclude": list(gone)})
    return hit.id in [one.id for one in found]


def check_smallest(engine, asked):
    """Each set is needed as it is told. Returns the sets."""
    sets = []
    for hit in engine.recommend(**asked, explain="smallest"):
        assert list(hit.smallest) == ["items"]
        gone = hit.smallest["items"]
        assert len(set(gone)) == len(gone) <= 10
        sets.append(gone)
        if not gone:
            continue
        assert not is_there(engine, hit, asked, gone)
        for item in gone:
            assert is_there(engine, hit, asked, [other for other in gone if other != item])
    return sets


@pytest.mark.parametrize("name", OPTIONS)
def test_without_the_set_a_hit_is_gone_and_with_any_of_it_there(movies, name):
    sets = check_smallest(movies, {"user": "u021", **OPTIONS[name]})
    assert any(sets) or name == "seen"


def test_of_an_additive_score_the_set_of_the_first_hit_is_the_smallest_there_is(movies):
    likes = ["Heat", "Zodiac", "Seven", "Alien", "Up", "Coco", "Memento", "Drive"]
    asked = {"k": 1, "heads": "neighbours", "likes": likes}
    (hit,) = movies.recommend(**asked, explain="smallest")
    size = len(hit.smallest["items"])
    assert size > 1
    ids = [reason["id"] for reason in hit.because]
    for fewer in range(1, size):
        for gone in combinations(ids, fewer):
            assert is_there(movies, hit, asked, gone)


def test_the_fewest_are_found_among_many_items_that_say_the_same():
    """One rival comes near by many small steps, another by two large ones."""
    n = 30
    addends = np.zeros((n, 3))
    addends[:, 0] = 1.0  # the hit
    addends[:, 1] = 0.9
    addends[:2, 0] = 8.0
    addends[2:, 2] = 1.2
    scores = addends.sum(axis=0).astype(np.float32)

    def first(without):
        left = np.delete(addends, [row - 100 for row in without], axis=0).sum(axis=0)
        return np.argsort(-left)[:1]

    sets = SmallestSets(
        positions=np.arange(100, 100 + n),
        first=first,
        losses=lambda items: [Losses(addends[:, items])],
        rivals=np.argsort(-scores),
        scores=scores,
        k=1,
    )
    assert sorted(sets.of(0)) == [100, 101]


def test_what_an_embedding_loses_without_items_is_what_another_solve_says():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(40, 5))
    factors = ImplicitFactors(keys, keys.T @ keys, alpha0=0.3, reg=0.2, nu=0.0, n_items=40)
    history, confidences = np.arange(7), rng.uniform(0.5, 4, 7)
    removals = factors.removals(history, confidences)
    for gone in ([2], [0, 5], [1, 3, 6]):
        kept = np.setdiff1d(history, gone)
        lost = removals.weights_of_sets(np.array([gone]))[0] @ removals.vectors[gone]
        without = factors.fold_in(kept, confidences[kept])
        assert factors.fold_in(history, confidences) - lost == pytest.approx(without, abs=1e-9)
    assert removals.weights_of_each()[2] == pytest.approx(
        removals.weights_of_sets(np.array([[2]]))[0, 0]
    )


def test_a_single_like_is_all_that_a_hit_rests_on(movies):
    hits = movies.recommend(likes=["Heat"], k=3, explain="smallest")
    assert [hit.smallest["items"] for hit in hits] == [[hit.because[0]["id"]] for hit in hits]


def test_nobody_has_nothing_that_could_be_gone(movies):
    (hit,) = movies.recommend(user="nobody", k=1, explain="smallest")
    assert hit.smallest == {"items": []}


def test_by_texts_alone_a_set_is_found_as_well(tmp_path):
    titles = ["red rain jacket", "blue rain jacket", "rain hat", "tea pot", "tea cup", "tea tray"]
    items = pd.DataFrame({"id": range(6), "title": titles})
    with qkvsearch.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        asked = {"likes": [0, 3, 4], "k": 1}
        sets = check_smallest(engine, asked)
        assert sets[0]
        (hit,) = engine.recommend(**asked, explain=True)
        assert {reason["how"] for reason in hit.because} == {"similar"}
        lines = [reason.text for reason in engine.recommend(**asked).reasons(0)]
        assert any(line.startswith("similar meaning to ") for line in lines)


def test_weights_and_records_count_as_in_another_question(tmp_path):
    rng = np.random.default_rng(3)
    log = pd.DataFrame(
        [(u, i, rng.integers(1, 90)) for u in range(40) for i in rng.choice(20, 6, replace=False)],
        columns=["user", "item", "hours"],
    )
    items = pd.DataFrame({"id": range(20), "title": [f"thing {i}" for i in range(20)]})
    columns = qkvsearch.Columns(weight="hours")
    with qkvsearch.build(
        tmp_path / "ws", items=items, interactions=log, columns=columns, encoder="corpus"
    ) as engine:
        engine.record(1, 3, weight=70)
        engine.record(1, 3, weight=20)
        assert any(check_smallest(engine, {"user": 1, "k": 2}))
        rankings = engine.recommend_many([1, 2], k=2, explain="smallest")
        assert [hit.smallest for hit in rankings[0]] == [
            hit.smallest for hit in engine.recommend(user=1, k=2, explain="smallest")
        ]


def test_what_people_did_is_said_where_the_only_event_says_it(tmp_path):
    log = pd.DataFrame(
        [(f"u{n}", n % 6, event) for n in range(18) for event in ("purchase", "refund")],
        columns=["user", "item", "event"],
    )
    log.loc[len(log)] = ["u0", 5, "purchase"]
    items = pd.DataFrame({"id": range(6), "title": [f"{n} lamp" for n in "abcdef"]})
    columns = qkvsearch.Columns(event="event", event_weights={"purchase": 5, "refund": -2})
    with qkvsearch.build(
        tmp_path / "ws", items=items, interactions=log, columns=columns, encoder="corpus"
    ) as engine:
        ranking = engine.recommend(likes=[0], k=1, heads="collaborative", explain=True)
        assert ranking[0].because[0]["did"] == "bought"
        assert ranking.reasons(0)[0].text == "people who bought a lamp also bought this"


@pytest.mark.parametrize("events", [None, ["view", "purchase"]])
def test_what_people_did_has_a_neutral_word_where_the_log_says_less(tmp_path, events):
    log = pd.DataFrame(
        {"user": [f"u{n % 9}" for n in range(40)], "item": [n % 6 for n in range(40)]}
    )
    columns = qkvsearch.Columns()
    if events is not None:
        log["event"] = [events[n % 2] for n in range(40)]
        columns = qkvsearch.Columns(event="event", event_weights={"view": 1, "purchase": 5})
    items = pd.DataFrame({"id": range(6), "title": [f"{n} lamp" for n in "abcdef"]})
    with qkvsearch.build(
        tmp_path / "ws", items=items, interactions=log, columns=columns, encoder="corpus"
    ) as engine:
        ranking = engine.recommend(likes=[0], k=1, heads="collaborative", explain=True)
        assert ranking[0].because[0]["did"] == "chose"
        assert ranking.reasons(0)[0].text == "people who chose a lamp also chose this"
        similar = engine.similar(0, k=1)
        assert any(
            re.search("people: .* chose a lamp .* chose", reason.text)
            for reason in similar.reasons(0)
        )


def test_a_level_that_is_none_is_refused(movies):
    for ask in (movies.recommend, lambda **options: movies.search("war", **options)):
        with pytest.raises(QkvError, match=r"`explain`.*smalest"):
            ask(**{"user": "u001", "explain": "smalest"})
        with pytest.raises(QkvError, match="`explain`"):
            ask(**{"user": "u001", "explain": 1})


# --- words ---

QUERIES = {
    "two words": "bank of the river",
    "typed wrong": "sourdogh bnak",
    "operators": '"sourdough bread" flour^3',
    "twice": "bank, Bank; (bank) robbery",
    "a minus": "bread -sourdough",
    "many": "tie a knot in a rope when sailing on the sea in a storm at night with good friends",
    "Chinese": "注意力 机制",
}


def without(query, words):
    for word in words:
        query = query.replace(word, "")
    return query


@pytest.mark.parametrize("name", QUERIES)
def test_without_the_words_a_hit_is_gone_and_with_any_of_them_there(videos, name):
    query, asked = QUERIES[name], {"k": 3, "anyway": True}
    n_found = 0
    for hit in videos.search(query, **asked, explain="smallest"):
        assert list(hit.smallest) == ["words"]
        words = hit.smallest["words"]
        assert not {"-sourdough", "of", "the"} & set(words)
        if not words:
            continue
        n_found += 1
        found = videos.search(without(query, words), **asked)
        assert hit.id not in [one.id for one in found]
        for word in words:
            fewer = without(query, [other for other in words if other != word])
            assert hit.id in [one.id for one in videos.search(fewer, **asked)]
    assert n_found


def test_the_words_are_of_the_hits_that_are_asked_for(videos):
    query = "bank of the river"
    three = [hit.smallest for hit in videos.search(query, k=3, explain="smallest")]
    last_two = videos.search(query, k=2, offset=1, explain="smallest")
    assert [hit.smallest for hit in last_two] == three[1:]
    # To be gone from thirty takes more.
    thirty = videos.search(query, k=30)
    assert [len(thirty.smallest(i)["words"]) for i in range(3)] != [
        len(found["words"]) for found in three
    ]


def test_chinese_words_are_the_pairs_that_the_catalog_has(tmp_path):
    titles = ["茶碗", "青花碗", "绿茶", "手机壳", "红色手机", "雨伞"]
    items = pd.DataFrame({"id": range(6), "title": titles})
    with qkvsearch.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        hits = engine.search("红手机的壳", k=2, explain="smallest")
        assert [hit.id for hit in hits] == [3, 4]
        assert [hit.smallest for hit in hits] == [{"words": ["手机"]}] * 2


def test_a_query_of_no_words_has_none_to_leave_out(videos):
    (hit,) = videos.search("", k=1, explain="smallest")
    assert hit.smallest == {"words": []}


# --- where it is asked ---


def test_the_command_line_has_the_sets_of_python_and_says_them(
    qkv, movies, movies_path, videos_path
):
    asked = ["recommend", "--user", "u021", "-k", 2, "--explain", "smallest"]
    rows = qkv("-w", movies_path, *asked, "--format", "json").json()
    hits = movies.recommend(user="u021", k=2, explain="smallest")
    assert [row["smallest"] for row in rows] == [hit.smallest for hit in hits]
    told = " ".join(qkv("-w", movies_path, *asked).stdout.split())
    for row in rows:
        titles = {reason["id"]: reason["title"] for reason in row["because"]}
        *others, last = [titles[item] for item in row["smallest"]["items"]]
        named = f"{', '.join(others)} and {last}" if others else last
        assert f"without {named} this would not be here" in told
    line = qkv("-w", videos_path, "search", "bread", "--explain", "smallest", "-k", 1)
    assert "without bread this would not be here" in line.stdout
    refused = qkv("-w", movies_path, "similar", "Heat", "--explain", "smallest")
    assert "smallest" in refused.stderr  # of `similar` it is another item
    assert refused.code == 1
