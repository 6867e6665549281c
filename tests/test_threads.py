"""Threads: as many as BLAS has, given back afterwards, and safe to call from several at once."""

import threading

import numpy as np
import pytest
from scipy.sparse import random_array
from threadpoolctl import threadpool_info, threadpool_limits

import qkvsearch as qkv
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.attention import attention, dot_score
from qkvsearch.learn.learn_again import learn_preferences
from qkvsearch.models import user_vectors
from qkvsearch.store import Workspace


def tensors(dtype, lead):
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=(*lead, n, 8)).astype(dtype) for n in (300, 600, 600))


def blas_threads():
    return [library["num_threads"] for library in threadpool_info()]


def test_the_threads_of_blas_are_given_back():
    given = tensors("float32", lead=(4,))
    attention(*given)
    before = blas_threads()
    attention(*given)
    with pytest.raises(ZeroDivisionError):
        attention(*given, score=lambda query, key, scale: 1 / 0)
    assert blas_threads() == before


def test_calls_from_several_threads_at_once_agree():
    given = tensors("float32", lead=(4,))
    expected = attention(*given)
    before = blas_threads()
    outputs = []
    callers = [threading.Thread(target=lambda: outputs.append(attention(*given))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(outputs) == 6
    for output in outputs:
        # On some processors the last bits differ between threads, whose memory begins elsewhere.
        np.testing.assert_array_equal(output, outputs[0])
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
    assert blas_threads() == before


def test_whichever_thread_asks_has_one_blas_thread():
    def ask():
        with one_blas_thread():
            found.extend(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")

    found = []
    with threadpool_limits(2, user_api="blas"):
        for _ in range(2):
            ask()
            other = threading.Thread(target=ask)
            other.start()
            other.join()
    assert set(found) == {1}


def test_a_score_may_itself_attend():
    x = np.random.default_rng(0).normal(size=(300, 4))

    def attentive(query, key, scale):
        return dot_score(attention(query, x, x, block_size=50), key, scale)

    got = attention(x, x, x, score=attentive, block_size=100)
    whole = attention(x, x, x, score=attentive, return_weights=True)[0]
    np.testing.assert_allclose(got, whole, atol=1e-12)


# --- the bits of an answer do not depend on the threads ---


@pytest.mark.parametrize("d", [128, 200, 256])
def test_embeddings_are_the_same_in_one_thread_and_in_two(d, monkeypatch):
    rng = np.random.default_rng(d)
    items = rng.normal(size=(300, d))
    people = user_vectors.ImplicitFactors(items, items.T @ items, 0.1, 0.02, 1.0, 300)
    liking = user_vectors.RatingFactors(np.zeros(300), items, 3.0, 1.0, 5.0, 0.1, 4.0, 0.5)
    histories = random_array((9, 300), density=0.3, format="csr", rng=rng)
    monkeypatch.setattr(user_vectors, "MAX_NUMBERS", 2 * d**2)  # several blocks
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            before = blas_threads()
            span = slice(*histories.indptr[:2])
            alone = people.history_vectors(histories.indices[span], histories.data[span])
            several = people.fold_in_many(histories), people.fold_in_many(histories[:1])
            ratings = 1 + 4 * histories.data[span]
            _, liked = liking.fold_in(histories.indices[span], ratings)
            found.append((alone, *several, liked))
            assert blas_threads() == before
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_answers_are_the_same_in_one_thread_and_in_two(films_path, tmp_path):
    learn_preferences(Workspace(films_path), {"settings": {"n_components": 160, "max_iter": 1}})
    found = []
    with qkv.open(films_path) as engine:
        for n_threads in (1, 2):
            with threadpool_limits(n_threads, "blas"):
                engine.recommend_all(tmp_path / "all.jsonl", k=20, damping=0.3)
                found.append(
                    [
                        (tmp_path / "all.jsonl").read_bytes(),
                        engine.recommend(user="u001", k=20, explain=True).to_records(),
                        engine.recommend(
                            user="u002", k=20, damping=0.3, diversity=0.3, explain=True
                        ).to_records(),
                    ]
                )
    assert found[0] == found[1]
