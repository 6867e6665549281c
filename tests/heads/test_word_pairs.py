"""Neighbouring words of a query count where they are neighbours in an item too."""

import pandas as pd
import pytest

import qkvsearch as qkv

TITLES = [
    "James Bond returns", "The Assassination of Jesse James", "Bondage of memory", "Bond by bond",
    "Bond, who is called James", "James and a very long way away from here a bond", "James",
]  # fmt: skip


def frame(titles, first=0):
    return pd.DataFrame(
        {
            "id": range(first, first + len(titles)),
            "title": titles,
            "body": ["bond or bail"] * len(titles),
        }
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs")
    with qkv.build(path, items=frame(TITLES), encoder="corpus") as engine:
        yield engine


def paired(engine, query):
    """The titles of the items in which a pair of words counts."""
    ranking = engine.search(query, k=20, heads="lexical")
    pairs = {}
    for i, hit in enumerate(ranking):
        parts = ranking.explain(i)
        assert sum(part.value for part in parts) == pytest.approx(hit.score, abs=1e-4)
        pairs[hit.title] = {part.query for part in parts if " " in str(part.query)}
    return {title: found for title, found in pairs.items() if found}


def test_a_pair_counts_in_either_order_with_few_words_between_and_in_one_column(engine):
    pair = {"james bond"}
    assert paired(engine, "james bond") == {TITLES[0]: pair}
    assert paired(engine, "bond called james") == {
        TITLES[4]: {"bond called", "called james"},
    }
    assert not paired(engine, "james james")
    assert not paired(engine, "james xyzzy bond")


def test_segments_answer_as_the_whole_build(engine, tmp_path):
    with qkv.build(tmp_path, items=frame(TITLES[:3]), encoder="corpus") as parted:
        parted.add(frame(TITLES[3:], 3))
        parted.remove(1)
        for _ in ("add", "compact"):
            assert paired(parted, "james bond") == paired(engine, "james bond")
            parted.compact()


def test_a_filter_leaves_pairs_to_the_items_that_remain(engine):
    scores = {hit.title: hit.score for hit in engine.search("james bond", heads="lexical")}
    (hit,) = engine.search("james bond", where="id = 0", heads="lexical")
    assert hit.score == pytest.approx(scores[TITLES[0]])
