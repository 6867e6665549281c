"""A word that the catalog lacks does not hide the thing that a query names."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.rank.named_things import phrase_of
from qkvsearch.text.analysis import Analyzer

KINDS = ["tent", "rain jacket", "sleeping bag", "water bottle", "headlamp", "axe", "kayak", "mug"]
SHOP = pd.DataFrame(
    [
        {
            "id": f"{kind}-{maker}",
            "title": f"{maker} {kind}",
            "kind": "Cooking" if kind == "mug" else "Outdoor life",
            "text": f"A {colour} thing for the garden",
        }
        for kind in KINDS
        for maker, colour in [("Alvra", "red"), ("Cordan", "green"), ("Elvet", "grey")]
    ]
)
FILMS = pd.DataFrame(
    {
        "id": list("abcdef"),
        "title": ["喜剧之王", "东邪西毒", "后天", "密探", "钢琴家", "学校"],
        "genres": ["喜剧", "剧情", "灾难", "悬疑", "传记", "剧情"],
        "text": [
            "一个跑龙套的演员想演主角",
            "欧阳锋（张国荣 饰）住在沙漠里，等人来找他",
            "风暴停电的一天，苹果树倒了",
            "葡萄牙的密探在办什么事",
            "华沙的钢琴家怎么躲藏",
            "学校的老师怎么做指导",
        ],
    }
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("named") / "shop"
    with qkv.build(path, items=SHOP, encoder="corpus") as engine:
        yield engine


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    path = tmp_path_factory.mktemp("named") / "films"
    with qkv.build(path, items=FILMS, encoder="corpus") as engine:
        yield engine


def shown(engine, text):
    """The titles of the hits where weak ones are left out."""
    return [hit.title for hit in engine.search(text, weak=False)]


@pytest.mark.parametrize(
    ("query", "thing"),
    [
        ("cheap tent", "tent"),
        ("tent for a festival", "tent"),
        ("where is a cheap tent for students", "tent"),
        ("kids sleeping bag", "sleeping bag"),
        ("affordable rain jacket", "rain jacket"),
    ],
)
def test_an_unknown_word_beside_a_thing_does_not_hide_it(shop, query, thing):
    titles = shown(shop, query)
    assert {title.partition(" ")[2] for title in titles} == {thing}
    assert "strong" not in {hit.match for hit in shop.search(query)}


@pytest.mark.parametrize("query", ["garden hose", "tent pole repair", "water heater", "red wine"])
def test_a_word_that_only_says_which_one_is_no_answer(shop, query):
    assert not shown(shop, query)


def test_the_thing_must_be_in_the_title(shop):
    # "Thing" is in all texts.
    assert not shown(shop, "frightening thing")


def test_a_category_names_a_thing_as_a_title_does(shop):
    titles = shown(shop, "affordable cooking")
    assert titles
    assert {title.partition(" ")[2] for title in titles} == {"mug"}


@pytest.mark.parametrize("query", ["kayak sale", "kayak recommendations"])
def test_a_word_of_asking_names_nothing(shop, query):
    assert {title.partition(" ")[2] for title in shown(shop, query)} == {"kayak"}


def test_an_item_needs_half_of_the_phrase(shop):
    assert shown(shop, "expensive kayak")
    assert not shown(shop, "expensive inflatable kayak")


def test_adjectives_follow_where_the_language_has_it_so(tmp_path):
    titles = ["Tienda grande", "Saco grande", "Mochila", "Chaqueta", "Linterna", "Cuchillo"]
    texts = [f"para la montaña y para el viaje número {n}" for n in "uno dos tres".split() * 2]
    items = pd.DataFrame({"id": list("abcdef"), "title": titles, "text": texts})
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus", language="spanish") as engine:
        assert shown(engine, "mochila impermeabilizada") == ["Mochila"]
        assert not shown(engine, "impermeabilizada mochila")


def test_a_part_between_blanks_is_found_whole_in_chinese(films):
    assert shown(films, "张国荣 霸王别姬") == ["东邪西毒"]
    assert not shown(films, "张国立 霸王别姬")


@pytest.mark.parametrize(
    "query", ["悬疑片推荐", "好看的悬疑片", "有什么好看的悬疑片", "感人的悬疑片"]
)
def test_a_class_is_found_by_its_name_in_chinese(films, query):
    assert shown(films, query) == ["密探"]


@pytest.mark.parametrize("query", ["学校片推荐", "电饭煲推荐", "好看的发型"])
def test_a_class_is_in_a_column_of_few_words_beside_the_title(films, query):
    assert not shown(films, query)


@pytest.mark.parametrize("query", ["红烧肉怎么做", "护照在哪里办", "苹果手机多少钱"])
def test_chinese_words_that_only_ask_are_no_answer(films, query):
    assert not shown(films, query)


def test_a_phrase_ends_before_a_stop_word():
    tokens = Analyzer().tokens("show me a light for reading at night")
    asked_for = {"light", "read", "night"}
    assert [token.text for token in phrase_of(tokens, asked_for)] == ["light"]
    assert phrase_of(tokens, set()) == []


def test_a_query_that_breaks_off_brings_up_titles_that_begin_so(tmp_path):
    titles = [
        "Silence",
        "The Silence",
        "Silence of the Lambs",
        "Lambs",
        "Pulp",
        "Pulp Fiction",
        "La Strada",
    ]
    items = pd.DataFrame({"id": list("abcdefg"), "title": titles})
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        assert shown(engine, "silence of the")[0] == "Silence of the Lambs"
        assert shown(engine, "pulp fic")[0] == "Pulp Fiction"
        assert shown(engine, "the pulp fic")[0] == "Pulp Fiction"
        # "La" is a word of another item, which lacks the words before.
        assert shown(engine, "silence of the la")[0] == "Silence of the Lambs"
        # What breaks off is completed before it is corrected.
        assert shown(engine, "the lam")[0] == "Lambs"
        # A word as it stands does not break off.
        assert shown(engine, "pulp")[0] == "Pulp"
