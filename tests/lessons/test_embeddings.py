"""Lesson 1: one-hot rows have nothing in common, a film's four numbers, arithmetic with words."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.errors import QkvError
from qkvsearch.lessons import Given, lesson


@pytest.fixture(scope="module")
def course(taught):
    return taught("embeddings")


def changed(step, **changes):
    """What a step finds with other values in the setup."""
    return lesson("embeddings", changes=changes).steps[step].computed


@pytest.mark.point(1)
def test_every_two_different_one_hot_rows_have_dot_product_0(course):
    products = course.showing(1).computed["products"]
    assert (products == np.eye(4)).all()
    assert (changed(0, n=50)["products"] == np.eye(50)).all()


@pytest.mark.point(1)
def test_embeddings_of_the_same_films_have_something_in_common(course):
    products = course.steps[2].computed["products"]
    assert (products > 0).all()
    assert products[2, 3] > products[2, 1]


@pytest.mark.point(2)
def test_the_film_sums_to_1_and_has_the_dot_product_and_length_of_the_source(course):
    found = course.showing(2).computed
    assert course.steps[2].computed["films"][0].tolist() == [0.5, 0.3, 0.15, 0.05]
    assert found["total"] == pytest.approx(1, abs=1e-12)
    assert found["self_product"] == pytest.approx(0.365, abs=1e-12)
    assert found["length"] == pytest.approx(0.60415, abs=5e-6)
    texts = " ".join(part.text for part in course.showing(2).parts if hasattr(part, "text"))
    assert "with itself is 0.37." in texts
    assert "Spider-Man: No Way Home" in texts


@pytest.mark.point(2)
def test_another_film_has_other_numbers():
    found = changed(1, film=np.array([0.0, 0.6, 0.8, 0.0]))
    assert (found["self_product"], found["length"]) == (pytest.approx(1), pytest.approx(1))


@pytest.mark.point(1)
def test_distances_stay_where_all_columns_move_and_mean_nothing_where_one_rows_do(course):
    found = course.steps[4].computed
    films = course.steps[2].computed["films"]
    assert found["distances"][0] == pytest.approx(((films[1] - films[0]) ** 2).sum() ** 0.5)
    np.testing.assert_allclose(found["turned"], found["distances"])
    assert found["distances"].argmin() == 0
    assert found["mixed_up"].argmin() != 0
    for order in ([1, 0, 2, 3], [2, 3, 0, 1]):
        moved = films[:, order]
        np.testing.assert_allclose(moved @ moved.T, films @ films.T)
        np.testing.assert_allclose(changed(4, films=moved)["distances"], found["distances"])


@pytest.mark.point(3)
def test_king_minus_man_plus_woman_is_nearest_to_queen(course):
    found = course.showing(3).computed
    assert found["neighbours"][0] == "queen"
    assert not {"king", "man", "woman"} & set(found["neighbours"])
    assert np.allclose(found["target"], [0.9, 0.85, 0.2, 0])


@pytest.mark.point(3)
@pytest.mark.parametrize(
    ("a", "b", "c", "nearest"),
    [("prince", "boy", "girl", "princess"), ("queen", "woman", "man", "king")],
)
def test_other_words_go_the_same_way(a, b, c, nearest):
    assert changed(3, asked=[a, b, c])["neighbours"][0] == nearest


@pytest.mark.point(3)
def test_a_word_that_turns_away_is_no_longer_the_nearest(course):
    turned = course.steps[3].computed["vectors"].copy()
    turned[1] = -turned[1]
    found = changed(3, vectors=turned)
    assert found["neighbours"][0] == "princess"
    assert found["cosines"][1] < 0


def test_what_the_reader_brings_has_no_place_here():
    with pytest.raises(QkvError, match="`sentence` has no place in the lesson embeddings"):
        lesson("embeddings", Given(sentence="a film"))


def test_quizzes_know_their_own_answers(course):
    assert [quiz.solution for quiz in course.quizzes[:4]] == ["0", "0.29", "princess", "1.21"]
    assert all(quiz.is_right(quiz.solution) for quiz in course.quizzes)
