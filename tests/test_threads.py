"""Threads: as many as BLAS has, given back afterwards, and safe to call from several at once."""

import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random_array
from threadpoolctl import threadpool_info, threadpool_limits

import qkvsearch as qkv
from qkvsearch._utils import threads
from qkvsearch._utils.threads import idle_cores, one_blas_thread
from qkvsearch.attention import attention, dot_score
from qkvsearch.collaborative import user_vectors
from qkvsearch.index.learn import learn_preferences
from qkvsearch.storage import Workspace


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


def shared_blas_threads():
    """Of the libraries that have one number for all threads: with OpenMP, each has its own."""
    blas = [x for x in threadpool_info() if x["user_api"] == "blas"]
    return {x["num_threads"] for x in blas if x["threading_layer"] != "openmp"}


def in_another_thread(function):
    other = threading.Thread(target=function)
    other.start()
    other.join()


@pytest.fixture
def two_idle(monkeypatch):
    monkeypatch.setattr(threads, "_n_idle_cores", lambda: 2)
    if not shared_blas_threads():
        pytest.skip("each thread has a number of BLAS threads of its own")
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_idle")
def test_who_is_alone_has_the_idle_cores_for_a_while():
    with one_blas_thread(), one_blas_thread():
        with idle_cores():
            with one_blas_thread():
                assert shared_blas_threads() == {2}
            assert shared_blas_threads() == {2}
        assert shared_blas_threads() == {1}
    assert shared_blas_threads() == {2}


@pytest.mark.usefixtures("two_idle")
def test_another_caller_ends_it():
    with one_blas_thread(), idle_cores():
        in_another_thread(one_blas_thread()(lambda: None))
        assert shared_blas_threads() == {1}


@pytest.mark.usefixtures("two_idle")
def test_two_callers_have_no_idle_cores():
    def beside():
        with one_blas_thread(), idle_cores():
            found.update(shared_blas_threads())

    found = set()
    with one_blas_thread():
        in_another_thread(beside)
    assert found == {1}
    assert shared_blas_threads() == {2}


@pytest.mark.usefixtures("two_idle")
def test_cores_that_others_use_are_not_idle(monkeypatch):
    monkeypatch.setattr(threads, "_n_idle_cores", lambda: 1)
    with one_blas_thread(), idle_cores():
        assert shared_blas_threads() == {1}


@pytest.mark.skipif(not Path("/proc/loadavg").exists(), reason="needs /proc/loadavg")
def test_busy_processes_are_seen():
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(threads.available_cores())]
    try:
        end = time.monotonic() + 60
        while threads._n_idle_cores() > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert threads._n_idle_cores() <= 1
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_threads_of_our_own_do_not_count(monkeypatch):
    monkeypatch.setattr(threads, "open", lambda *_, **more: StringIO("0 0 0 4/99 7"), raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    monkeypatch.setattr(threads, "_is_running", lambda thread: thread != "sleeps")
    monkeypatch.setattr(threads.os, "listdir", lambda path: ["asks", "a", "b", "sleeps"])
    assert threads._n_idle_cores() == 7  # all but that of the one other process


def test_where_the_system_does_not_say_no_core_is_idle(monkeypatch):
    def missing(*given, **more):
        raise FileNotFoundError

    monkeypatch.setattr(threads, "open", missing, raising=False)
    assert threads._n_idle_cores() == 1


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
