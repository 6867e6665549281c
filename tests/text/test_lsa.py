"""The corpus encoder: keys are what `encode` gives, subjects are near, tiny data is no crash."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from qkvsearch.text.learned.corpus_encoders import CorpusEncoder

SUBJECTS = [
    "sourdough bread baking with flour",
    "bread flour and a baking oven",
    "baking sourdough in a dutch oven",
    "guitar chords for beginners",
    "electric guitar strings and chords",
    "beginners strum the guitar strings",
]


@pytest.fixture(scope="module")
def fitted():
    return CorpusEncoder(n_components=2).fit(SUBJECTS)


def test_transform_gives_unit_rows_and_zeros_for_unknown_words(fitted):
    rows = fitted.transform(["bread", "zzqx", ""])
    assert rows.shape == (3, 2)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 0], atol=1e-5)


def test_texts_on_one_subject_are_nearer_than_others(fitted):
    cosines = fitted.embeddings_ @ fitted.embeddings_.T
    same = [cosines[i, j] for i in range(6) for j in range(6) if i // 3 == j // 3]
    other = [cosines[i, j] for i in range(6) for j in range(6) if i // 3 != j // 3]
    assert min(same) > max(other) + 0.3


def test_fit_transform_is_fit_then_its_embeddings(fitted):
    np.testing.assert_array_equal(clone(fitted).fit_transform(iter(SUBJECTS)), fitted.embeddings_)


tiny = st.lists(
    st.lists(st.sampled_from(["cat", "dog", "sea", "the", "!!"]), max_size=4).map(" ".join),
    min_size=1,
    max_size=5,
)


@given(tiny)
def test_tiny_catalogs_of_any_shape_fit_and_agree_with_encode(texts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = CorpusEncoder().fit(texts)
        keys = encoder.transform(texts)
    assert encoder.embeddings_.shape == keys.shape
    np.testing.assert_allclose(encoder.embeddings_, keys, atol=1e-5)
    for text, key in zip(texts, keys, strict=True):
        np.testing.assert_allclose(
            encoder.encoder_.encode(text).vectors.sum(axis=0), key, atol=1e-5
        )


def test_equal_texts_make_no_directions_but_their_own():
    encoder = CorpusEncoder().fit(["deep sea"] * 3)
    cosines = encoder.transform(["deep", "sea"]) @ encoder.embeddings_.T
    np.testing.assert_allclose(cosines, np.ones((2, 3)), atol=1e-5)


def test_a_text_outside_the_main_directions_has_no_key_made_of_rounding_errors():
    texts = ["deep sea water", "deep sea", "sea water", "deep water", "red car"]
    encoder = CorpusEncoder(n_components=1).fit(texts)
    assert not encoder.embeddings_[4].any()
    assert not encoder.transform(["red car"]).any()
    assert encoder.embeddings_[:4].all()
