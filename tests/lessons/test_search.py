"""Lesson 4: a search is attention with one query, and so is the engine's own."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute.search import LETTERS, engine_scores

TITLES = ["Transformer code", "Attention query", "Power transformer", "Oven power", "Bread oven"]
TAGS = ["attention query", "code", "transformer", "oven power", "bread"]
TEXTS = [f"{title}\n{tag}" for title, tag in zip(TITLES, TAGS, strict=True)]


@pytest.fixture(scope="module")
def course(taught):
    return taught("search")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    items = pd.DataFrame({"id": list(LETTERS), "title": TITLES, "tags": TAGS})
    return qkvsearch.build(tmp_path_factory.mktemp("search") / "ws", items=items, encoder="corpus")


@pytest.mark.point(8)
def test_the_query_meets_keys_of_title_and_tags(course):
    found = course.steps[1].computed | {"product": engine_scores(TEXTS, "transformer").scores}
    assert course.showing(8).computed["query"].sum() == 1
    assert np.allclose(found["scores"][0], found["product"], atol=1e-6)
    assert np.flatnonzero(found["scores"][0]).tolist() == [0, 2]


@pytest.mark.point(8)
def test_a_repeated_word_adds_less_and_less_up_to_a_ceiling_and_a_long_text_less(course, taught):
    found = taught("appendix").steps[2].computed
    numbers, times = np.array(found["repeated"]), np.array([1, 2, 3, 8, 100])
    per_repeat = np.diff(numbers) / np.diff(times)
    assert (per_repeat > 0).all()
    assert (np.diff(per_repeat) < 0).all()
    assert numbers[-1] < found["ceiling"] < 1.1 * numbers[-1]
    assert (np.diff(found["longer"]) < 0).all()
    assert course.steps[1].computed["keys"][4].max() == pytest.approx(by_the_line("bread", 4))


def by_the_line(word, row):
    """The number in the key by the line that the lesson prints, with what it prints."""
    texts = [f"{title} {tags}".lower().split() for title, tags in zip(TITLES, TAGS, strict=True)]
    n, have = texts[row].count(word), sum(word in text for text in texts)
    idf = np.log(1 + (len(texts) - have + 0.5) / (have + 0.5))
    length = len(texts[row]) / np.mean([len(text) for text in texts])
    return idf * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length))


@pytest.mark.point(8)
def test_near_temperature_0_one_video_takes_all(course):
    found = course.steps[3].computed
    assert found["weights"][-1].tolist() == [0, 0, 1, 0, 0]
    assert found["outputs"][-1].tolist() == [0, 1, 0]
    assert (np.diff(found["weights"].max(axis=1)) > 0).all()


@pytest.mark.point(9)
def test_weights_sum_to_1_and_mix_the_values(course):
    found = course.showing(9).computed
    assert found["weights"].sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(found["output"], found["weights"] @ found["values"], atol=1e-12)
    assert found["output"].sum() == pytest.approx(1)


@pytest.mark.point(8, 9)
def test_the_search_boxs_weights_are_attentions(course):
    found = course.steps[4].computed
    assert np.allclose(found["engine_row"], found["masked_weights"][0], atol=1e-6)
    assert found["masked_weights"].sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.point(8)
@pytest.mark.parametrize("query", ["transformer", "attention code", "power"])
def test_an_engine_built_from_the_videos_gives_the_lessons_weights(engine, query):
    found = lesson("search", Given(sentence=query)).steps[4].computed
    weights = found["masked_weights"][0]
    hits = engine.search(query, heads="lexical")
    assert len(hits) == np.count_nonzero(weights)
    for hit in hits:
        assert hit.weight == pytest.approx(weights[LETTERS.index(hit.id)], abs=1e-5)


@pytest.mark.point(8)
def test_by_meaning_a_video_without_the_word_is_found(course):
    found = course.steps[5].computed
    assert found["cosines"][0, 1] > found["cosines"][0, 4]
    ranking = [hit.id for hit in found["both"]]
    assert set(ranking[:2]) == {"A", "C"}
    assert ranking[-1] == "E"


def test_a_sentence_of_ones_own_is_the_query():
    own = lesson("search", Given(sentence="Queries, please: QUERY attention"))
    assert own.steps[0].computed["query"].tolist() == [[1, 0, 0, 0, 0, 2, 0]]
    assert own.steps[3].computed["weights"][-1].argmax() == 1


@pytest.mark.parametrize("sentence", ["banana", "", " "])
def test_a_sentence_without_a_known_word_says_which_there_are(sentence):
    with pytest.raises(QkvError, match=rf"no word of '{sentence}'.*attention, bread"):
        lesson("search", Given(sentence=sentence))
