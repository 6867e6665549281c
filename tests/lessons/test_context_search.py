"""Lesson 13: layers of context, in a sentence and in a search."""

import numpy as np
import pytest

from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute import context_search
from qkvsearch.lessons.compute.videos import all_titles
from qkvsearch.lessons.parts import ShownTable
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.pretrained import fetch as models


def test_three_recorded_searches_are_helped_and_one_is_hurt():
    searches = context_search.recorded_layers()["searches"]
    assert [one.query for one in searches] == list(context_search.QUERIES)
    gains = [by_table - by_layers for by_table, by_layers in (one.places for one in searches)]
    assert [gain > 0 for gain in gains] == [True, True, True, False]
    for one in searches:
        assert {one.by_table, one.by_layers} <= set(all_titles())


def test_a_place_of_1_is_the_title_that_was_wanted():
    for one, wanted in zip(
        context_search.recorded_layers()["searches"], context_search.WANTED, strict=True
    ):
        first = one.by_table, one.by_layers
        assert [title == wanted for title in first] == [place == 1 for place in one.places]


def test_the_lesson_says_that_searches_were_recorded():
    step = lesson("learning").steps[-2]
    depths, searches = (part for part in step.parts if isinstance(part, ShownTable))
    assert len(searches.rows) == len(context_search.QUERIES)
    assert len(depths.columns) == 1 + len(context_search.DEPTHS)
    said = " ".join(getattr(part, "text", "") for part in step.parts)
    assert "were recorded" in said


def test_the_table_alone_knows_no_order_and_the_layers_do(tiny_bert):
    encoder = pretrained(str(tiny_bert))
    texts = ["deep red sea", "red deep sea"]
    table = context_search.table_vectors(encoder, texts)
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(table[0], table[1], atol=1e-6)
    layers = encoder.encode_many(texts)
    assert np.abs(layers[0] - layers[1]).max() > 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("own_models")
class TestMinilm:
    @pytest.fixture(autouse=True)
    def needs_minilm(self):
        if models.find("minilm") is None:
            pytest.skip("needs minilm: qkvsearch model fetch minilm")

    def test_minilm_searches_as_was_recorded(self):
        recorded = context_search.recorded_layers()["searches"]
        assert context_search.searches(pretrained("minilm")) == recorded

    def test_ones_own_sentence_is_a_query(self):
        step = lesson("learning", Given(sentence="the bank of the river")).steps[-2]
        *_, searches = (part for part in step.parts if isinstance(part, ShownTable))
        assert searches.rows[-1][0] == "the bank of the river"
        assert searches.rows[-1][3] == "–"
