"""A query that nothing in the catalog answers has no hits, and says so."""

import json
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from click.testing import CliRunner

import qkvsearch as qkv
from qkvsearch.cli import group
from qkvsearch.errors import DamagedError
from qkvsearch.heads.answerability import FACT, WordStatistics
from qkvsearch.rank.answerable import NEAREST, NOTHING, UNKNOWN, answerable
from qkvsearch.text.analysis import Token
from qkvsearch.text.languages import stop_words
from qkvsearch.text.pretrained.static import find_package
from tests.builds import republished

ITEMS = pd.DataFrame(
    [
        ("1", "Rain jacket", "A waterproof jacket for the mountains, with tips"),
        ("2", "Jacket potatoes", "How to bake a potato in its jacket"),
        ("3", "It", "A clown comes back"),
        ("4", "Up (2009)", "A house flies away"),
        ("11", "The Who, live", "A concert in Leeds"),
        ("5", "Guitar lessons", "Chords and strumming for a first song"),
        ("6", "The art of bread", "Sourdough and patience on a winter day"),
        ("7", "Mountain rivers", "Kayaks and rapids and cold rain"),
        ("8", "冬天的轮胎", "雪和冰"),
        ("SKU-004467", "A lamp", "A lamp with a number"),
        ("10", "Road to the mountains", "A journey on foot"),
    ],
    columns=["id", "title", "body"],
)
COLUMNS = qkv.Columns(id="id", title="title", text=["title", "body"])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("silence") / "ws"
    qkv.build(path, items=ITEMS, columns=COLUMNS, encoder="corpus").close()
    return path


@pytest.fixture
def engine(path):
    with qkv.open(path) as engine:
        yield engine


def heads_of(engine, text):
    return {name: engine.head(name, text) for name in engine.models.head_weights}


def asked(engine, text, *names):
    found = heads_of(engine, text)
    chosen = {name: found[name] for name in names or found}
    return answerable(engine.models, engine.texts.reader.read(text).lookup.words, chosen)


# --- what has no answer ---


@pytest.mark.parametrize("query", ["the", "of the and", "how in on"])
def test_words_that_only_join_others_have_no_hits(engine, query):
    found = engine.search(query)
    assert not found
    assert NOTHING in found.notes


@pytest.mark.parametrize("query", ["xyzzyqq vbnmrt", "陶瓷", "Привет", "excel", "!!!"])
def test_what_no_head_knows_has_no_hits(engine, query):
    assert not asked(engine, query).answers
    for found in (engine.search(query), engine.search(query, anyway=True)):
        assert not found
        assert found.notes == [UNKNOWN]


def test_anyway_shows_the_nearest_and_says_so(engine):
    found = engine.search("of the and", anyway=True)
    assert len(found)
    assert NEAREST in found.notes
    assert NEAREST not in engine.search("rain", anyway=True).notes


def test_a_silent_answer_has_no_candidates_whatever_is_asked_beside(engine):
    for options in ({"where": "title LIKE '%a%'"}, {"explain": True}):
        found = engine.search("of the and", **options)
        assert (len(found), found.n_candidates) == (0, 0)
        assert NOTHING in found.notes


# --- what has one ---


def test_every_title_is_answered_and_every_word_of_one(engine):
    for title in ITEMS["title"]:
        assert engine.search(title)[0].title == title
        for word in title.split():
            expected = word.lower().strip(",") not in stop_words() or word == "It"
            assert bool(engine.search(word)) == expected, word


def test_a_title_that_begins_with_words_that_only_join_others_is_found_by_them(engine):
    assert engine.search("the who")[0].title == "The Who, live"
    assert not engine.search("who the")
    assert not engine.search("who")


def test_a_code_is_answered(engine):
    assert engine.search("sku-004467")[0].title == "A lamp"


def test_a_correction_counts_as_the_word_that_it_is_corrected_to(engine):
    keys = engine.models.lexical_keys
    typed, corrected = ([Token("jakcet", term)] for term in ("jakcet", "jacket"))
    of = partial(WordStatistics.of, keys)
    assert not answerable(engine.models, of(typed), {"lexical": None}).answers
    assert answerable(engine.models, of(corrected), {"lexical": keys.head(corrected)}).answers


@pytest.mark.parametrize(
    "names", [["lexical"], ["lsa"], ["lsa", "contrastive"], ["lexical", "lsa"]]
)
def test_any_heads_can_tell(engine, names):
    assert asked(engine, "rain jacket", *names).answers
    assert not asked(engine, "xyzzyqq", *names).answers
    assert 0 <= asked(engine, "rain xyzzyqq", *names).value <= 1
    assert len(engine.search("guitar", heads=names))
    assert not engine.search("of the and", heads=names)


def test_no_head_and_no_word_is_no_answer(engine):
    words = WordStatistics.of(engine.models.lexical_keys, [])
    assert not answerable(engine.models, words, {}).answers


def test_more_of_the_words_are_more_of_an_answer(engine):
    values = [
        asked(engine, f"rain {rest}").value for rest in ("xyzzyqq vbnmrt", "vbnmrt", "jacket")
    ]
    assert values == sorted(values)
    assert values[0] < values[-1]


@pytest.fixture
def unsure(path):
    """An engine that no evidence is enough for."""
    with qkv.open(path) as engine:
        known = engine.models.answerability
        engine.models.__dict__["answerability"] = replace(known, level=1.0)
        yield engine


def test_words_that_the_catalog_has_all_need_no_evidence(unsure):
    assert asked(unsure, "waterproof patience").answers
    assert not asked(unsure, "jacket xyzzyqq").answers


def test_nor_does_a_rare_word_among_few(unsure):
    assert asked(unsure, "guitar xyzzyqq vbnmrt").answers
    assert not asked(unsure, "guitar xyzzyqq vbnmrt qqqz").answers
    assert asked(unsure, "轮胎 xyzzyqq").answers


# --- kept with a build ---


def test_it_stays_as_items_join_and_leave_and_segments_merge(path, tmp_path):
    items = pd.DataFrame({"id": ["12"], "title": ["Kettle"], "body": ["boils water"]})
    qkv.build(tmp_path / "ws", items=ITEMS, columns=COLUMNS, encoder="corpus").close()
    with qkv.open(tmp_path / "ws") as engine:
        before = engine.models.snapshot.facts[FACT]
        assert not engine.search("kettle")
        for change in (lambda: engine.add(items), engine.compact):
            change()
            assert engine.models.snapshot.facts[FACT] == before
            assert engine.search("kettle")[0].title == "Kettle"
            assert not engine.search("of the and")
        engine.remove("12")
        assert not engine.search("kettle")


@pytest.mark.parametrize("wrong", [{"level": 1}, [], 7])
def test_facts_that_no_build_writes_are_damage(tmp_path, wrong):
    path = tmp_path / "ws"
    qkv.build(path, items=ITEMS, columns=COLUMNS, encoder="corpus").close()
    republished(path, lambda contents: contents.facts.update({FACT: wrong}))
    with qkv.open(path) as engine, pytest.raises(DamagedError, match="facts"):
        engine.search("jacket")


# --- the command line ---


def test_the_command_says_so_and_shows_the_nearest_on_request(path):
    def run(*words):
        found = CliRunner().invoke(group, ["-w", str(path), "search", *words])
        assert found.exit_code == 0, found.stderr
        return found.stdout, found.stderr

    shown, said = run("of the and", "--format", "json")
    assert json.loads(shown) == []
    assert "nothing in the catalog answers this" in said
    shown, said = run("of the and", "--format", "json", "--anyway")
    assert json.loads(shown)[0]["title"] == "The art of bread"
    assert "these hits come nearest" in said


# --- the samples ---


def test_the_sample_is_silent_about_what_it_does_not_have(videos_path):
    with qkv.open(videos_path) as engine:
        for query in ("xyzzyqq vbnmrt", "of the and", "陶瓷", "bitcoin", "jakcet"):
            assert not engine.search(query), query
        for query in ("sourdough", "learn the guitar", "machine learning", "泡沫"):
            assert len(engine.search(query)), query
        _, titles = engine.snapshot.catalog.names(range(0, engine.models.n_items, 7))
        assert all(asked(engine, title).answers for title in titles)


@pytest.mark.skipif(find_package() is None, reason="needs wordllama")
def test_an_encoder_that_has_a_vector_for_every_string_is_not_believed(tmp_path):
    with qkv.build(tmp_path / "ws", items=ITEMS, columns=COLUMNS, encoder="static") as engine:
        assert heads_of(engine, "xyzzyqq vbnmrt")["static"] is not None
        found = engine.search("xyzzyqq vbnmrt")
        assert not found
        assert found.notes == [NOTHING]
        assert len(engine.search("xyzzyqq vbnmrt", anyway=True))
        # A word that no item has, and a meaning that one has.
        assert engine.search("musician")[0].title == "Guitar lessons"
        known = engine.models.answerability
        for near, answers in ((0.0, True), (1.0, False)):
            noise = {letters: {**of, "static": (near, 0.01)} for letters, of in known.noise.items()}
            engine.models.__dict__["answerability"] = replace(known, noise=noise, level=1.0)
            assert asked(engine, "musician").answers == answers


def test_hits_that_only_come_nearest_are_weak_whatever_a_note_says(engine):
    ranking = engine.search("of the and", anyway=True)
    query = engine.texts.reader.read("of the and")
    assert not ranking.head.is_answer
    silent = replace(ranking, head=replace(ranking.head, notes=[]), notes=[])
    assert {hit.match for hit in engine.texts.with_match(silent, query)} == {"weak"}
    assert engine.texts.weak(query, silent.head).all()
    assert engine.search("jacket").head.is_answer
