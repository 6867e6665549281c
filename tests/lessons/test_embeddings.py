"""Lesson 1: one-hot rows have nothing in common, a film's four numbers, arithmetic with words."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def course(taught):
    return taught("embeddings")


@pytest.mark.point(1)
def test_every_two_different_one_hot_rows_have_dot_product_0(course):
    products = course.showing(1).computed["products"]
    assert (products == np.eye(4)).all()


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


@pytest.mark.point(1)
def test_distances_stay_where_all_columns_move_and_mean_nothing_where_one_rows_do(course, taught):
    found = taught("appendix").steps[0].computed
    films = course.steps[2].computed["films"]
    assert found["distances"][0] == pytest.approx(((films[1] - films[0]) ** 2).sum() ** 0.5)
    np.testing.assert_allclose(found["turned"], found["distances"])
    assert found["distances"].argmin() == 0
    assert found["mixed_up"].argmin() != 0


@pytest.mark.point(3)
def test_king_minus_man_plus_woman_is_nearest_to_queen(course):
    found = course.showing(3).computed
    assert found["neighbours"][0] == "queen"
    assert not {"king", "man", "woman"} & set(found["neighbours"])
    assert np.allclose(found["target"], [0.9, 0.85, 0.2, 0])
