"""Blocks that import libraries, in several threads: no filter is lost, and no variable stays."""

import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from qkvsearch._utils.validation import check_fitted
from qkvsearch.attention.layers.basic import gelu
from qkvsearch.imports import ignoring_warnings, leaving_no_trace

VARIABLE = "QKVSEARCH_OF_A_TEST"
ONE = {VARIABLE: "1"}
SCIPY = "ignore", "the matrix subclass is not the recommended way"


@pytest.fixture(autouse=True)
def _same_filters_afterwards(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with warnings.catch_warnings():
        yield
    os.environ.pop(VARIABLE, None)


def messages():
    return [each[1].pattern for each in warnings.filters if hasattr(each[1], "pattern")]


def in_thread(task):
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def test_a_filter_that_another_thread_adds_stays():
    def add():
        warnings.filterwarnings("ignore", "of another thread")
        warnings.filterwarnings("ignore", "about it", UserWarning, "sklearn")

    with leaving_no_trace():
        in_thread(add).join()
    assert {"of another thread", "about it"} <= set(messages())


def test_filters_of_libraries_are_removed_and_those_of_before_stay():
    with leaving_no_trace():
        warnings.filterwarnings(*SCIPY)
    assert SCIPY[1] not in messages()
    warnings.filterwarnings(*SCIPY)
    with leaving_no_trace():
        warnings.filterwarnings(*SCIPY)
    assert messages().count(SCIPY[1]) == 1


def test_a_filter_is_removed_that_a_library_adds_while_another_thread_catches_warnings():
    with leaving_no_trace():
        catching = warnings.catch_warnings()
        catching.__enter__()
        warnings.filterwarnings(*SCIPY)
    assert SCIPY[1] not in messages()
    catching.__exit__(None, None, None)


def test_calls_of_other_threads_lose_no_filter():
    model = StandardScaler().fit(np.eye(3))
    has_ended = threading.Event()

    def work():
        while not has_ended.wait(0.0001):
            gelu(np.ones(4, np.float32))
            check_fitted(model)

    threads = [in_thread(work) for _ in range(2)]
    names = [f"filter {number}" for number in range(100)]
    for name in names:
        warnings.filterwarnings("ignore", name)
        time.sleep(0.001)  # the others run
    has_ended.set()
    for thread in threads:
        thread.join()
    assert set(names) <= set(messages())


def test_blocks_of_two_threads_leave_no_variable():
    first_is_open, second_is_open = threading.Event(), threading.Event()

    def first():
        with leaving_no_trace(variables=ONE):
            first_is_open.set()
            second_is_open.wait(0.1)

    def second():
        first_is_open.wait()
        with leaving_no_trace(variables=ONE):
            second_is_open.set()

    for thread in [in_thread(first), in_thread(second)]:
        thread.join()
    assert VARIABLE not in os.environ


def test_a_block_may_be_within_a_block():
    with leaving_no_trace(variables=ONE):
        with leaving_no_trace(variables={VARIABLE: "2"}):
            assert os.environ[VARIABLE] == "2"
        assert os.environ[VARIABLE] == "1"
    assert VARIABLE not in os.environ


def test_a_value_that_another_thread_sets_stays():
    with leaving_no_trace(variables=ONE):
        os.environ[VARIABLE] = "of the user"
    assert os.environ.pop(VARIABLE) == "of the user"
    with leaving_no_trace(variables=ONE):
        del os.environ[VARIABLE]
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_value_of_the_user_comes_back(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ImportError), leaving_no_trace(variables=ONE):
        raise ImportError
    assert os.environ[VARIABLE] == value


def test_where_all_is_imported_no_thread_waits_and_nothing_is_set():
    found = []

    def imported_before():
        with leaving_no_trace("json", "numpy", variables=ONE):
            found.append(VARIABLE in os.environ)

    with leaving_no_trace():
        thread = in_thread(imported_before)
        thread.join(5)
    assert found == [False]
    with leaving_no_trace("numpy", "not_imported_yet", variables=ONE):
        assert VARIABLE in os.environ


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_that_is_forked_within_a_block_is_free_of_it():
    code = f"""
import os, threading
from qkvsearch.imports import leaving_no_trace
is_open, may_close = threading.Event(), threading.Event()
def block():
    with leaving_no_trace(variables={ONE}):
        is_open.set()
        may_close.wait()
thread = threading.Thread(target=block)
thread.start()
is_open.wait()
def in_child():
    assert {VARIABLE!r} not in os.environ
    with leaving_no_trace(variables={ONE}):
        assert os.environ[{VARIABLE!r}] == "1"
def code_of(task):
    child = os.fork()
    if child == 0:
        try:
            task()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
print(code_of(in_child))
may_close.set()
thread.join()
try:
    with leaving_no_trace(variables={ONE}):
        child = os.fork()
finally:
    if child == 0:
        os._exit({VARIABLE!r} in os.environ)
print(os.waitpid(child, 0)[1], {VARIABLE!r} in os.environ)"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["0", "0", "False"], done.stderr


def test_a_warning_is_ignored_in_a_block_and_filters_of_others_stay():
    warnings.simplefilter("error")
    with ignoring_warnings("not yet", FutureWarning):
        warnings.warn("not yet there", FutureWarning, stacklevel=1)
        warnings.filterwarnings("ignore", "of another thread")
    assert "of another thread" in messages()
    with pytest.raises(FutureWarning):
        warnings.warn("not yet there", FutureWarning, stacklevel=1)
