"""Lesson 13: attention's matrices, how they are learned, and what a real model attends to."""

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.errors import QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute import learning
from qkvsearch.lessons.drawings import Heads
from qkvsearch.lessons.parts import Curve, ShownTable, Text
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.pretrained import fetch as models


@pytest.fixture(scope="module")
def course():
    return lesson("learning")


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(learning, "find", lambda name: None)


@pytest.mark.point(16)
def test_without_weights_it_is_softmax_of_x_xᵀ_over_the_root_of_d_times_x(course):
    found = course.showing(16).computed
    np.testing.assert_allclose(
        found["outputs"][0], [0.8446375965, 0.7330436052, 0.8446375965, 0.7330436052]
    )
    np.testing.assert_array_equal(found["projected"], found["outputs"])  # by identity matrices


@pytest.mark.point(17)
def test_three_layers_make_a_row_for_each_token(course):
    shapes = course.showing(17).computed["shapes"]
    assert shapes["X"] == (3, 4)
    assert [shapes[name] for name in ("Q", "K", "V", "outputs")] == [(3, 3)] * 4


@pytest.mark.point(31)
def test_the_column_convention_is_the_transpose(taught):
    found = taught("appendix").showing(31).computed
    np.testing.assert_array_equal(found["A"].T, found["by_rows"]["scores"])
    np.testing.assert_allclose(found["weights"].sum(axis=0), np.ones(3))
    np.testing.assert_allclose(found["weights"].T, found["by_rows"]["weights"], rtol=1e-12)
    np.testing.assert_allclose(found["O"].T, found["by_rows"]["outputs"], rtol=1e-12)
    assert found["apart"] < 1e-12


@pytest.mark.point(32)
def test_entry_i_j_is_the_score_of_query_j_for_key_i(taught):
    found = taught("appendix").showing(32).computed
    np.testing.assert_array_equal(found["A"], [[1, 0, 1], [6, 4, 8], [4, 2, 5]])
    for i, j in np.ndindex(3, 3):
        assert found["A"][i, j] == found["by_rows"]["scores"][j, i]
        assert found["names"][i, j] == f"α{j + 1},{i + 1}"
    assert not np.array_equal(found["A"], found["A"].T)  # else it would show nothing


@pytest.mark.point(33)
def test_the_matrices_are_drawn_at_random_and_learned(course):
    found = course.showing(33).computed
    losses = found["losses"]
    assert losses[-1] < 1e-3 * losses[0]
    for name, drawn in found["drawn"].items():
        assert np.abs(drawn).max() < 0.5
        assert np.abs(found["w"][name] - drawn).max() > 0.5
    # At first a token attends to all, at last to the one before.
    np.testing.assert_allclose(found["before"], np.full((4, 4), 0.25), atol=0.02)
    np.testing.assert_allclose(found["after"], np.roll(np.eye(4), 1, axis=0), atol=0.05)
    curve = next(p for p in course.showing(33).parts if isinstance(p, Curve))
    np.testing.assert_array_equal(curve.values, losses)


@pytest.mark.point(33)
def test_what_is_learned_holds_for_sequences_that_it_did_not_see():
    _, w, _ = learning.train(*learning.task(seed=0))
    x, target = learning.task(seed=9)
    outputs = attention(*(x @ w[name] for name in ("query", "key", "value")))
    assert np.square(outputs - target).mean() < 1e-3 * np.square(target).mean()


@pytest.mark.point(38)
def test_initializers_draw_with_the_variance_that_they_aim_at(course):
    drawn = course.showing(38).computed["drawn_variances"]
    assert drawn["Gaussian"] == pytest.approx(0.0004, rel=0.05)
    assert drawn["Xavier"] == pytest.approx(2 / 7, rel=0.05)
    assert drawn["Kaiming"] == pytest.approx(2 / 4, rel=0.05)


@pytest.mark.point(38)
def test_a_variance_that_knows_the_width_and_relu_keeps_signals_alive(course):
    left = course.showing(38).computed["medians"]
    assert left["Kaiming"] > 0.1 > 100 * left["Xavier"] > 1e6 * left["Gaussian"]
    # With layers too few to notice, all are alive.
    assert min(learning.after_layers(way, 1, 4, 5).min() for way in learning.STARTS) > 1e-5


@pytest.mark.point(38)
def test_what_kaiming_leaves_is_a_range_of_draws(course):
    found = course.showing(38).computed
    again = learning.after_layers("Kaiming", 10, 64, 100)[25:]
    assert np.mean((again > found["low"]) & (again < found["high"])) > 0.6
    assert found["medians"]["Kaiming"] == pytest.approx(np.median(again), rel=0.25)


@pytest.mark.point(33)
def test_small_matrices_have_small_gradients_so_plain_steps_are_slow():
    x, target = learning.task()
    _, _, adam = learning.train(x, target)
    _, _, plain = learning.train(x, target, is_plain=True)
    assert plain[-1] > 0.5 * plain[0] > 1e3 * adam[-1]


# --- a transformer, asked with controls ---


def step_of(course, title):
    return next(step for step in course.steps if step.title == title)


def told(step):
    return " ".join(part.text for part in step.parts if isinstance(part, Text))


@pytest.mark.point(14)
@pytest.mark.usefixtures("nothing_installed")
class TestRecorded:
    """What the last steps claim, by what MiniLM gave once."""

    @pytest.fixture(scope="class")
    def recorded(self):
        return learning.recorded()

    def test_without_a_model_it_says_that_the_numbers_are_recorded(self):
        course = lesson("learning")
        assert "It is not installed here" in told(step_of(course, "A real transformer at work"))
        assert len(course.steps) == 10

    def test_the_strongest_weight_is_given_by_most_words_and_for_the_other_ending(self, recorded):
        place = recorded.strongest
        assert place == (5, 11)
        assert recorded.heads[place] == recorded.heads.max() > 0.6
        assert recorded.others[place] > 0.35
        assert recorded.most[place] > len(recorded.words) / 2
        to_animal, to_street = recorded.swapped
        assert to_animal[place] > 0.5 > 10 * to_street[place]

    def test_words_are_counted_without_the_marks_at_both_ends(self, recorded):
        names = [recorded.text.words[i] for i in recorded.words]
        assert names == learning.ANIMAL.sentences[0].split()
        best = recorded.text.weights[5, 11].argmax(axis=1) == recorded.target
        assert recorded.most[5, 11] == best.sum() - best[0] - best[-1] < best.sum()

    def test_the_drawing_and_the_text_have_the_same_numbers(self):
        step = step_of(lesson("learning"), "A real transformer at work")
        (drawing,) = (part for part in step.parts if isinstance(part, Heads))
        assert (drawing.layer, drawing.head) == step.computed["strongest"]
        assert drawing.weights[drawing.word].max() == step.computed["weight"]
        np.testing.assert_array_equal(step.computed["heads"], learning.recorded().heads)

    def test_another_head_singles_the_word_out(self, recorded):
        place = recorded.singled
        assert place != recorded.strongest
        assert recorded.heads[place] > 6 * recorded.others[place]
        assert recorded.swapped[0][place] < recorded.heads[place] / 2

    def test_it_turns_to_the_right_noun_no_more_often_than_a_coin(self, recorded):
        turned = learning.right_turns(recorded.turns)
        assert turned[0]  # the sentence that it was chosen by
        assert turned[1:].sum() == 4
        assert len(turned) - 1 == 7

    def test_words_of_a_sentence_become_more_similar_altogether(self, recorded):
        words = recorded.text.words
        before, after = (dict(zip(words, row, strict=True)) for row in recorded.cosines)
        assert after["animal"] > before["animal"] + 0.5
        assert min(after["The"], after["was"]) > after["animal"]
        assert recorded.other_cosine > 0.5

    def test_equal_weights_do_not_count_equally(self, recorded):
        strong, singled = (cut for cut in recorded.removed if cut["head"])
        assert abs(strong["weight"] - singled["weight"]) < 0.02
        assert strong["moved"] > 20 * singled["moved"]

    def test_the_most_weight_is_not_what_moves_it_most(self, recorded):
        cuts = {cut["key"]: cut for cut in recorded.removed if cut["head"] is None}
        assert max(cuts, key=lambda key: cuts[key]["weight"]) == "[CLS]"
        assert max(cuts, key=lambda key: cuts[key]["moved"]) == "animal"
        assert cuts["animal"]["near"] < 0.6 * recorded.cosines[1][2] < 2 * cuts["street"]["near"]

    def test_every_token_is_taken_away_once(self, recorded):
        keys = [cut["key"] for cut in recorded.removed if cut["head"] is None]
        assert keys == [name for name in recorded.text.words if name != "it"]
        step = step_of(lesson("learning"), "Take a weight away")
        (table,) = (part for part in step.parts if isinstance(part, ShownTable))
        assert sorted(row[0] for row in table.rows) == sorted(keys)


def test_of_a_sentence_of_ones_own_nothing_is_recorded(nothing_installed):
    course = lesson("learning", Given(sentence="the dog ran as it was late"))
    assert "No pretrained model is installed here" in course.steps[-3].parts[0].text
    assert len(course.steps) == 7


def test_a_model_that_cannot_be_read_is_named(nothing_installed, monkeypatch):
    def refuse(name):
        raise QkvError("no package 'tokenizers' here")

    monkeypatch.setattr(learning, "find", lambda name: name)
    monkeypatch.setattr(learning, "pretrained", refuse)
    step = step_of(lesson("learning"), "A real transformer at work")
    assert "cannot be read: no package 'tokenizers' here" in told(step)
    with pytest.raises(QkvError, match="no package 'tokenizers'"):  # asked for, it is an error
        lesson("learning", Given(encoder="minilm"))


def test_the_folder_of_a_transformer_may_be_given(tiny_bert):
    course = lesson("learning", Given(encoder=str(tiny_bert)))
    found = step_of(course, "A real transformer at work").computed
    assert found["heads"].shape == (2, 3)
    assert found["weight"] == found["heads"].max() == found["heads"][found["layer"], found["head"]]
    assert step_of(course, "With controls: a head, and a cosine").computed["cosines"].shape[0] == 2
    # It reads twelve tokens, and the sentences of two endings are longer.
    assert "Does that head know what is meant?" not in [step.title for step in course.steps]


def test_a_weight_that_is_taken_away_is_away_in_that_head_alone(tiny_bert):
    encoder = pretrained(str(tiny_bert))
    reading = encoder.attend("the cat sat")
    word, key = 1, 2
    same = learning.without(encoder, reading, word, word, (99, 0))  # in a layer that there is not
    np.testing.assert_allclose(same, reading.word_vectors()[-1], atol=1e-5)
    one = learning.without(encoder, reading, word, key, (0, 1))
    every = learning.without(encoder, reading, word, key)
    assert np.abs(one - same).max() > 1e-6
    assert np.abs(every - one).max() > 1e-6


def test_static_says_that_it_is_no_transformer():
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    step = lesson("learning", Given(encoder="static")).steps[-3]
    assert "This is no transformer" in step.parts[1].text
    assert "“it” attend to" in step.parts[0].text
    assert "to “animal” is" in step.parts[1].text
    row = step.computed["row"]
    assert row.sum() == pytest.approx(1, abs=1e-5)
    assert step.computed["weight"] == pytest.approx(row[step.computed["words"].index("animal")])


@pytest.mark.parametrize(("sentence", "word"), [("dogs like it", "it"), ("Dogs are cats", "cats")])
def test_in_a_sentence_of_ones_own_a_word_is_chosen(sentence, word):
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    asked = learning.ask(Given(sentence=sentence, encoder="static"))
    assert (asked.kind, asked.word) == ("static", word)
    assert asked.target != word


def test_a_sentence_without_words_is_refused():
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    with pytest.raises(QkvError, match="no words to attend to one another"):
        lesson("learning", Given(sentence="...", encoder="static"))


@pytest.mark.slow
@pytest.mark.usefixtures("own_models")
class TestMinilm:
    @pytest.fixture(autouse=True)
    def needs_minilm(self):
        if models.find("minilm") is None:
            pytest.skip("needs minilm: qkvsearch model fetch minilm")

    def test_minilm_gives_what_was_recorded(self):
        recorded = learning.recorded()
        asked = learning.ask(Given(encoder="minilm"))
        assert asked.kind == "transformer"
        found = learning.evidence(asked)
        for name in ("heads", "others", "swapped"):  # these were recorded in bytes
            np.testing.assert_allclose(getattr(found, name), getattr(recorded, name), atol=5e-3)
        for name in ("cosines", "turns", "other_cosine"):
            np.testing.assert_allclose(getattr(found, name), getattr(recorded, name), atol=1e-3)
        place = found.strongest
        assert (place, found.singled) == (recorded.strongest, recorded.singled)
        assert found.most[place] == recorded.most[place]
        for one, other in zip(found.removed, recorded.removed, strict=True):
            assert one["key"] == other["key"]
            assert one["moved"] == pytest.approx(other["moved"], abs=1e-3)

    def test_the_lessons_own_sentence_is_not_measured_again(self, monkeypatch):
        monkeypatch.setattr(learning, "measured", None)
        course = lesson("learning")
        said = told(step_of(course, "A real transformer at work"))
        assert "was recorded" in said
        assert "installed here" not in said
        # What is quick is computed as one reads.
        assert "scores" in course.steps[-1].computed


@pytest.mark.point(33)
def test_the_same_matrices_serve_every_sequence_and_each_has_its_own_weights(course):
    """In this task the place decides; under matrices that are large and random it does not."""
    found = course.showing(33).computed
    assert found["apart"]["outputs"] > 1
    assert 0 < found["apart"]["weights"] < 0.01
    rng = np.random.default_rng(0)
    drawn = {name: rng.normal(size=array.shape) for name, array in found["w"].items()}
    assert learning.two_sequences(drawn)["weights"] > 0.1
