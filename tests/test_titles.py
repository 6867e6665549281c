"""A title that is typed whole finds its item first, whatever the heads say."""

import pandas as pd
import pytest

import qkvsearch as qkv

# Long texts about what a title names outweigh the title, and so do titles that have the word twice.
ITEMS = {
    "hero": ("英雄", "刺客"),
    "heroes": ("中华英雄", "英雄 英雄 英雄"),
    "love": ("爱", "一个家庭"),
    "pets": ("宠爱", "爱 爱 爱"),
    "cow": ("Cow", "oil on canvas"),
    "cows": ("Cow, cow, cow", "a cow beside a cow, and a cow"),
    "cafe": ("Café Noir", "a poster"),
    "noir": ("Noir", "café noir, café noir"),
    "bowl1": ("Tea bowl", "bowl"),
    "bowl2": ("Tea Bowl", "tea bowl for tea"),
    "bowls": ("Tea bowls, tea bowls", "tea bowl, tea bowl, tea bowl"),
    "who": ("The Who", "a band"),
    "cat": ("Cat", "animal"),
    "catalogue": ("Catalogue", "catalogue of catalogues"),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    items = pd.DataFrame(
        [(id_, title, text) for id_, (title, text) in ITEMS.items()],
        columns=["id", "title", "summary"],
    )
    folder = tmp_path_factory.mktemp("titles")
    with qkv.build(folder / "ws", items=items, encoder="corpus") as built:
        yield built


@pytest.mark.parametrize(
    ("query", "id_"),
    [
        ("英雄", "hero"),
        ("爱", "love"),
        ("cow", "cow"),
        ("COW", "cow"),
        ('"cow"', "cow"),
        ("cafe  noir", "cafe"),
        ("the who", "who"),
        ("summary:oil cow", "cow"),
    ],
)
def test_the_item_with_a_title_is_first(engine, query, id_):
    first = engine.search(query).hits[0]
    assert first.id == id_
    assert first.match == "strong"


@pytest.mark.parametrize("query", ["cow cow", "noir cafe", "bowl", "cat*", "the cow"])
def test_a_part_of_a_title_or_more_than_it_is_none(engine, query):
    assert all("title" not in hit.heads for hit in engine.search(query, anyway=True).hits)


def test_items_of_one_title_are_first_in_the_order_of_their_scores(engine):
    hits = engine.search("tea bowl").hits
    assert [hit.id for hit in hits[:2]] == ["bowl2", "bowl1"]
    assert [hit.heads["title"] > 0 for hit in hits[:3]] == [True, True, False]


def test_what_a_title_adds_is_among_the_reasons(engine):
    ranking = engine.search("cow")
    first, second = ranking.explained_records()[:2]
    texts = {reason["text"]: reason["value"] for reason in first["reasons"]}
    assert texts["it has this title"] > 0
    assert sum(texts.values()) == pytest.approx(first["score"], abs=1e-4)
    assert "it has this title" not in [reason["text"] for reason in second["reasons"]]


def test_a_title_that_is_filtered_out_changes_nothing(engine):
    found = engine.search("cow", where="title <> 'Cow'").hits
    assert found[0].id == "cows"
    assert all("title" not in hit.heads for hit in found)


def test_while_typing_a_whole_title_is_first_and_a_completion_is_none(engine):
    assert engine.search("cat", prefix=True).hits[0].id == "cat"
    assert all("title" not in hit.heads for hit in engine.search("catalo", prefix=True).hits)


def test_a_correction_is_searched_for_as_if_it_was_typed(engine):
    """A title with an error finds its item as the title does."""
    assert "title" in engine.search("caffe noir").hits[0].heads


def test_a_title_that_is_not_searched_brings_nothing_up(tmp_path):
    items = pd.DataFrame(
        {"id": ["a", "b"], "title": ["Cow", "Cowboy"], "text": ["cowboy cow", "cow"]}
    )
    columns = qkv.Columns(id="id", title="title", text=["text"])
    with qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus") as engine:
        assert all("title" not in hit.heads for hit in engine.search("cow").hits)
