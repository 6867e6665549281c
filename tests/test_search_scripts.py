"""Searches in ten scripts, as people type them, on recipes, poems and films."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.rank.answerable import answerable

TITLES = {
    "zh": ["霸王别姬", "宫保鸡丁", "饮食男女", "回到未来"],
    "poem": ["静夜思", "春晓", "登鹳雀楼"],
    "ja": ["ラーメンの作り方", "となりのトトロ", "ｶﾞﾝﾀﾞﾑ入門", "ハウルの動く城"],
    "ko": ["김치찌개 끓이는 법", "살인의 추억"],
    "th": ["ข้าวหอมมะลิ", "กาแฟคั่วบด", "แกงเขียวหวานไก่", "รองเท้าวิ่งผู้ชาย"],
    "hi": ["पनीर टिक्का मसाला", "फ़िल्म संगीत", "हिन्दी कविता"],
    "bn": ["চিংড়ি মালাইকারি", "রসগোল্লা"],
    "ta": ["மசாலா தோசை", "பொங்கல்"],
    "ar": ["مكتبة المدرسة", "أحمد في القاهرة", "مستشفى المدينة", "كُشَرِي مصري"],
    "fa": ["کتاب آشپزی", "فیلم ایرانی"],
    "he": ["שָׁלוֹם עֲלֵיכֶם", "חומוס עם טחינה"],
    "uk": ["Ґрунт для квітів", "Вареники з вишнями"],
    "wide": ["ＤＶＤ ２０２４"],
}
TEXTS = {
    "poem-0": "床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    "poem-1": "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",
    "poem-2": "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。",
    "zh-3": "科学家朋友造出时间机器，少年独自来到三十年前。",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    rows = [
        (f"{script}-{i}", title, TEXTS.get(f"{script}-{i}"))
        for script, titles in TITLES.items()
        for i, title in enumerate(titles)
    ]
    items = pd.DataFrame(rows, columns=["id", "title", "text"])
    columns = qkv.Columns(id="id", title="title", text=["title", "text"])
    path = tmp_path_factory.mktemp("scripts") / "ws"
    with qkv.build(path, items=items, columns=columns, encoder="corpus") as shelf:
        yield shelf


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("霸王別姬", "zh-0"),
        ("床前明月光", "poem-0"),
        ("低頭思故鄉", "poem-0"),
        ("男女", "zh-2"),
        ("らーめん", "ja-0"),
        ("トナリノトトロ", "ja-1"),
        ("ガンダム", "ja-2"),
        ("ﾊｳﾙ", "ja-3"),
        ("김치찌개", "ko-0"),
        ("ข้าว", "th-0"),
        ("กาแฟ", "th-1"),
        ("รองเท้า", "th-3"),
        ("फिल्म", "hi-1"),
        ("हिंदी", "hi-2"),
        ("पनिर", "hi-0"),
        ("চিংডি", "bn-0"),
        ("பொங்கள்", "ta-1"),
        ("المدرسه", "ar-0"),
        ("احمد", "ar-1"),
        ("مستشفي", "ar-2"),
        ("كشري", "ar-3"),
        ("كتـــاب", "fa-0"),
        ("فيلم", "fa-1"),
        ("שלום", "he-0"),
        ("грунт", "uk-0"),
        ("dvd 2024", "wide-0"),
        ("٢٠٢٤", "wide-0"),
    ],
)
def test_spellings_find_the_item_first(shelf, query, first, assert_adds_up):
    hits = shelf.search(query, k=3, explain=True)
    assert str(hits[0].id) == first
    assert hits[0].match == "strong"
    for i, hit in enumerate(hits):
        assert_adds_up([reason.value for reason in hits.reasons(i)], hit.score)
        assert_adds_up([part.value for part in hits.explain(i, full=True)], hit.score)


@pytest.mark.parametrize(
    ("typed", "meant", "item"),
    [
        ("霸王另姬", "霸王别姬", "zh-0"),
        ("宫爆鸡丁", "宫保鸡丁", "zh-1"),
        ("饮男女", "饮食男女", "zh-2"),
        ("回到美未来", "回到未来", "zh-3"),
        ("食饮男女", "饮食男女", "zh-2"),
        ("窗前明月光", "床前明月光", "poem-0"),
        ("花落知多小", "花落知多少", "poem-1"),
        ("ハウルの動く域", "ハウルの動く城", "ja-3"),
        ("となりのトトル", "となりのトトロ", "ja-1"),
        ("살인의 추엌", "살인의 추억", "ko-1"),
        ("แกงเขียวหวาไก่", "แกงเขียวหวานไก่", "th-2"),
    ],
)
def test_an_error_in_a_phrase_without_spaces_is_corrected_and_said(shelf, typed, meant, item):
    hits = shelf.search(typed, k=3, snippet=True)
    assert (str(hits[0].id), hits[0].match) == (item, "strong")
    assert [(change["typed"], change["read"]) for change in hits.corrections] == [(typed, meant)]
    assert any(typed in note and meant in note for note in hits.notes)


def test_a_phrase_that_an_item_has_is_not_corrected(shelf):
    for typed in ("霸王别姬", "黄河入海流", "กาแฟคั่วบด", "살인의 추억", "少年回到未来"):
        assert not shelf.search(typed).corrections


def test_a_query_is_answered_where_one_item_has_most_of_its_characters(shelf):
    hits = shelf.search("少年用时间机器来到未来")
    assert str(hits[0].id) == "zh-3"
    assert not hits.corrections


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        ("少年时间机器山川湖海", True),  # six of ten characters
        ("少年山川湖海", False),
        ("вареники вишнями зелені гарячі", True),
        ("вареники солодкі зелені гарячі", False),
    ],
)
def test_half_of_the_characters_or_words_are_enough(shelf, typed, answers):
    asked = shelf.texts.reader.read(typed).lookup
    heads = dict.fromkeys(shelf.models.head_weights)
    found = answerable(shelf.models, asked.words, heads, tokens=asked.tokens)
    assert found.answers == answers


@pytest.mark.parametrize("typed", ["如何申请护照", "量子力学入门教程", "วิธีทำบัญชี", "天気予報を見る"])
def test_something_else_has_no_strong_hit_and_is_not_corrected(shelf, typed):
    hits = shelf.search(typed)
    assert not hits.corrections
    assert all(hit.match == "weak" for hit in hits)


def test_a_title_with_an_error_is_found_beside_a_condition(shelf):
    assert [str(hit.id) for hit in shelf.search("霸王另姬 -title:饮食", k=1)] == ["zh-0"]


def test_added_items_are_read_and_corrected_in_the_same_way(shelf, tmp_path):
    from shutil import copytree

    with qkv.open(copytree(shelf.workspace.path, tmp_path / "ws")) as copy:
        copy.add(pd.DataFrame([("new", "盜夢空間", None)], columns=["id", "title", "text"]))
        for typed in ("盗梦空间", "盗蓦空间"):
            assert str(copy.search(typed)[0].id) == "new"
        assert copy.search("盗蓦空间").corrections[0]["read"] == "盜夢空間"


def test_the_words_of_a_hit_are_shown_as_they_are_written(shelf):
    hits = shelf.search("らーめん", k=1, explain=True, snippet=True)
    assert hits[0].matches == {"title": ["ラーメン"]}
    hit = shelf.search("舉頭望明月", k=1, explain=True, snippet=True)[0]
    assert hit.matches == {"text": ["明月", "举头望明月"]}
    assert "举头望明月" in hit.snippet
