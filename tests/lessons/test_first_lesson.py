"""Lesson 0: its weights are those of the search box and of the recommender."""

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.lessons import language, lesson
from qkvsearch.lessons.compute.videos import (
    VIDEOS,
    categories,
    occurrences,
    shared_videos,
    titles,
    watched,
    watched_keys,
    word_categories,
    word_keys,
    word_rows,
)
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.exports.page.figures import table
from qkvsearch.lessons.parts import ShownTable, Text

QUERIES = {"search": "transformer", "context": "transformer toy"}


@pytest.mark.parametrize("name", [*QUERIES, "recommend"])
def test_weights_are_softmax_of_the_engines_scores(taught, videos, name):
    parts = [part for step in taught("ask-match-mix").steps for part in step.parts]
    flows = {part.name: part for part in parts if isinstance(part, Flow)}
    weights = flows[name].steps()["weights"][0]
    if name in QUERIES:
        ranking = videos.search(QUERIES[name], k=100, heads="lexical")
    else:
        ranking = videos.recommend(user="w240", k=400, heads="neighbours")
    scores = {hit.id: hit.score for hit in ranking}
    answered = [video in scores for video in VIDEOS]
    # What viewer 2 has watched is masked.
    assert [video for video in VIDEOS if video not in scores] == ["v157"] * (name == "recommend")
    assert (weights > 0).tolist() == answered
    logs, box = np.log(weights[answered]), np.array([scores[v] for v in VIDEOS if v in scores])
    # The lesson's numbers have two decimals. The search box also counts "toy transformer" as a
    # pair, and "toy" as a common word.
    np.testing.assert_allclose(np.corrcoef(logs, box), 1, atol=1e-3)


def test_a_videos_number_is_larger_when_the_word_makes_up_more_of_its_text():
    n_of_word, n_words = occurrences("transformer")
    by_share = np.argsort(-n_of_word / n_words)
    assert by_share.tolist() == np.argsort(-word_keys("transformer")[:, 0]).tolist()


def test_words_match_by_the_videos_that_they_share():
    words = ("model", "railway", "transformer")
    rows, shared = word_rows(*words), shared_videos(*words)
    n_videos = np.diag(shared)
    np.testing.assert_allclose(rows @ rows.T, shared / np.sqrt(np.outer(n_videos, n_videos)))
    assert n_videos.tolist() == [2, 1, 8]


def test_a_words_value_is_the_share_of_its_videos_in_each_category():
    kinds, of_video = categories()
    (model,) = word_categories("model")
    has_word = word_rows("model")[0] > 0
    assert dict(zip(kinds, model, strict=True)) == {
        kind: of_video[has_word, k].mean() for k, kind in enumerate(kinds)
    }
    assert model.sum() == 1


def test_the_neighbours_move_a_word_towards_theirs(taught):
    steps = [step for step in taught("ask-match-mix").steps if "contextual" in step.computed]
    computed = steps[0].computed
    assert computed["contextual"][0, 0] > computed["V"][-1, 0]


def test_what_is_said_of_another_word_adds_up(taught):
    (computed,) = (s.computed for s in taught("ask-match-mix").steps if "crafts" in s.computed)
    crafts = computed["crafts"]
    assert crafts[1] == 0
    np.testing.assert_allclose(crafts.sum(), computed["by_grid"][0, 0])
    # As they are written, too.
    assert round(sum(round(one, 2) for one in crafts), 2) == round(crafts.sum(), 2)


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_what_e_is_is_said_before_the_drawing_that_needs_it(spoken):
    with language(spoken):
        (step,) = (s for s in lesson("ask-match-mix").steps if flow_of(s) == "weights")
    (place,) = (n for n, part in enumerate(step.parts) if isinstance(part, Flow))
    assert any("2.72" in part.text for part in step.parts[:place] if isinstance(part, Text))


def flow_of(step):
    """The name of the drawing of a step, "" where it has none."""
    return next((part.name for part in step.parts if isinstance(part, Flow)), "")


def test_the_numbers_of_watched_videos_add_up_to_one_that_asks(taught):
    step = next(s for s in taught("ask-match-mix").steps if "three" in s.computed)
    numbers = watched_keys("w240")
    history, may_attend = watched("w240")
    # Each of the videos asks with a 1.
    np.testing.assert_allclose(numbers @ np.ones(len(history)), step.computed["K"][:, 1])
    assert len(step.computed["three"]) == 3 < len(history)
    # What is said of the video that the mask hides: it is one of those, with no number for itself.
    (hidden,) = np.flatnonzero(~may_attend)
    assert VIDEOS[hidden] == "v157"
    itself = next(n for n, title in enumerate(history) if title == titles()[hidden])
    assert numbers[hidden, itself] == 0
    # Of viewer 1, what they add up to is below 0.
    assert watched_keys("w172")[hidden].sum() == step.computed["other_keys"][hidden, 0] < 0


def test_beside_grid_the_share_of_crafts_is_that_of_the_word_alone(taught):
    # The text says so, rounded to two decimals.
    step = next(s for s in taught("ask-match-mix").steps if "by_grid" in s.computed)
    assert abs(step.computed["by_grid"][0, 0] - step.computed["V"][-1, 0]) < 0.005


def test_a_category_stands_behind_its_colour_in_the_first_table(taught):
    (videos,) = (p for p in taught("ask-match-mix").steps[0].parts if isinstance(p, ShownTable))
    page = str(table(videos))
    for k, kind in enumerate(videos.kinds):
        swatch = f'<span class="swatch kind-{k}" aria-hidden="true"></span>{kind}'
        assert page.count(swatch) == sum(row[-1] == kind for row in videos.rows) > 0


def test_a_drawing_opens_at_the_stage_that_is_new_in_its_step(taught):
    parts = [part for step in taught("ask-match-mix").steps for part in step.parts]
    first = {part.name: part.stages[0] for part in parts if isinstance(part, Flow)}
    new = {
        "weights": "scaled",
        "search": "outputs",
        "recommend": "masked",
        "attend": "outputs",
        "all": "outputs",
    }
    assert first == {name: new.get(name, "scores") for name in first}


def test_who_is_asked_about_in_the_first_question_can_be_chosen(taught):
    parts = [part for step in taught("ask-match-mix").steps for part in step.parts]
    (flow,) = (part for part in parts if isinstance(part, Flow) and part.askers)
    (keys,) = flow.askers[0].keys[None]
    np.testing.assert_array_equal(keys, flow.steps()["keys"])
    numbers = watched_keys("w172").sum(axis=1)
    np.testing.assert_array_equal(flow.askers[1].keys[:, 1], numbers)
    assert VIDEOS[int(np.flatnonzero(~flow.askers[1].seen[0])[0])] == "v001"


@pytest.mark.parametrize("name", ["attend", "all"])
def test_each_word_that_may_be_chosen_moves_the_meaning_to_a_category_of_its_own(taught, name):
    parts = [part for step in taught("ask-match-mix").steps for part in step.parts]
    (flow,) = (part for part in parts if isinstance(part, Flow) and part.name == name)
    kinds = categories()[0]
    leads = {}
    for one in flow.replacements:
        X = word_rows(*one.columns)
        V = word_categories(*one.columns)
        mixed = attention(X, X, V, scale=2.0)[-1]
        np.testing.assert_allclose(flow.having(one).steps()["outputs"][-1], mixed)
        leads[one.label] = kinds[int(mixed.argmax())]
    assert leads == {
        "railway": "Crafts", "grid": "Science", "vision": "Education", "language": "Technology",
    }  # fmt: skip
    first = flow.having(flow.replacements[0]).steps()
    for step, array in flow.steps().items():
        np.testing.assert_array_equal(first[step], array)
    # In a drawing of one query, a value is a label in all of them, or numbers in all of them.
    drawn = {
        tuple(flow.having(one).value_of(j) != "" for j in range(3)) for one in flow.replacements
    }
    assert len(drawn) == 1
