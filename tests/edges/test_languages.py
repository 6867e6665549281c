"""Texts of every script, and of none, with every encoder: answered or left alone, never a crash."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError
from qkvsearch.text.encoders import installed

TITLES = [
    "注意力机制入门",
    "Transformer 里的掩码 explained",
    "東京の夜景",
    "서울의 밤",
    "Crème brûlée à la maison",
    "CAFÉ CULTURE IN VIENNA",
    "🚀 to the moon 🌕",
    "שלום עולם",
    "مرحبا بالعالم",
    "हिन्दी में खाना",
    "zero\u200bwidth \ufeffjoiner\u200d",
    "nul\x00in the middle",
    "!!! ??? ...",
    "",
    " \t ",
    "\u200b\u200e",
    "Cre\u0300me anglaise",
    "ﬁne ﬂour",
    "word " * 300,
]
QUERIES = [
    *TITLES,
    "猫",
    "注意力",
    "creme brulee",
    "CRÈME",
    "👩‍👩‍👧‍👦",
    "\u202etfel ot thgir",
    "\x00",
    "\ud800",
    "\udcff\udcfe",
    "a" * 5000,
    "深" * 600,
    "'",
    "<PAD>",
    "[CLS] [SEP]",
    "\n\n",
    "İstanbul ß ẞ ǆ",
]
NOTHING = ["", " \t ", "\u200b\u200e", "\n\n", "\x00"]


@pytest.fixture(scope="module", params=["corpus", "static", "tiny_bert", "minilm"])
def engine(request, tmp_path_factory):
    """A catalog of such titles, built with each encoder that there is here."""
    choice = request.param
    if choice == "minilm":
        request.getfixturevalue("own_models")
    if choice == "tiny_bert":
        pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")
        choice = str(request.getfixturevalue("tiny_bert"))
    elif choice != "corpus" and choice not in installed():
        pytest.skip(f"needs {choice}")
    items = pd.DataFrame({"id": range(len(TITLES)), "title": TITLES, "tags": TITLES[::-1]})
    log = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [0, 1, 1, 2, 3]})
    path = tmp_path_factory.mktemp("languages") / "ws"
    with qkvsearch.build(path, items=items, interactions=log, encoder=choice) as built:
        yield built


def sound(ranking):
    """Finite scores in falling order, weights that a softmax gives."""
    scores = np.array([hit.score for hit in ranking])
    assert np.isfinite(scores).all()
    assert (np.diff(scores) <= 0).all()
    assert sum(hit.weight for hit in ranking) <= 1 + 1e-5


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_any_text_is_searched_for_with_reasons_that_add_up(engine, query, assert_adds_up):
    ranking = engine.search(query, k=4)
    sound(ranking)
    for hit in ranking[:1]:
        assert_adds_up([part.value for part in ranking.explain(0)], hit.score)


@pytest.mark.parametrize("query", NOTHING, ids=range(len(NOTHING)))
def test_nothing_to_see_finds_nothing_and_attends_to_nothing(engine, query):
    assert bool(engine.search(query)) == (not query.strip())  # an empty query browses
    assert engine.attend(query).weights.shape[0] == 0


@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_any_text_attends_to_itself_or_is_refused_as_too_long(engine, text):
    with suppress(QkvError):
        found = engine.attend(text)
        assert np.isfinite(found.weights).all()
        np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)


def test_every_item_has_neighbours_whatever_it_is_called(engine):
    for i in range(len(TITLES)):
        sound(engine.similar(i, k=5))


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("注意力", "注意力机制入门"),
        ("掩码", "Transformer 里的掩码 explained"),
        ("東京", "東京の夜景"),
        ("서울", "서울의 밤"),
        ("creme brulee", "Crème brûlée à la maison"),
        ("café culture", "CAFÉ CULTURE IN VIENNA"),
        ("שלום", "שלום עולם"),
        ("हिन्दी", "हिन्दी में खाना"),
    ],
)
def test_a_word_finds_its_title_whatever_script_accent_or_case(engine, query, title):
    ranking = engine.search(query, k=2)  # the title is the tags of one more item
    assert TITLES.index(title) in {hit.id for hit in ranking}


def test_ligatures_are_letters_to_the_lexical_head(engine):
    """MiniLM reads them as signs of their own, as its tokenizer does."""
    ranking = engine.search("fine flour", heads=["lexical"], k=2)
    assert TITLES.index("ﬁne ﬂour") in {hit.id for hit in ranking}


def test_a_chinese_question_finds_the_chinese_videos(videos):
    found = videos.search("注意力机制是什么", k=3)
    assert any("注意力" in hit.title for hit in found)
    assert {"v165", "v074"} & {hit.id for hit in found}
