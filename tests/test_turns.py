"""Turns: one thread at a time, first come, first served, whatever happens in one."""

import ctypes
import random
import signal
import sys
import threading
import time
from contextlib import suppress

import pytest

from qkvsearch._utils import query_lock as turns
from qkvsearch._utils.deadline import DeadlineError, deadline
from qkvsearch._utils.query_lock import pause, query_lock, released, without_query_lock
from qkvsearch._utils.threads import one_blas_thread
from tests.blas import blas_threads

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="threads run at once here"
)


@pytest.fixture
def never_lost(monkeypatch):
    """However long a turn takes, so that nobody goes on because it counts as lost."""
    monkeypatch.setattr(turns, "LOST", 1000.0)


def wait_until_in_line(n):
    """Wait until n threads wait for their turn, which only the queue itself can tell."""
    end = time.monotonic() + 300
    while len(turns._waiting) < n and time.monotonic() < end:
        time.sleep(0.001)


def run_all(tasks):
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not any(thread.is_alive() for thread in threads)


def test_one_thread_has_its_turn_at_a_time():
    inside, most = [], []

    def ask():
        for _ in range(20):
            with query_lock(), query_lock():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0002)
                inside.pop()

    run_all([ask] * 6)
    assert len(most) == 120
    assert set(most) == {1}


def test_what_takes_no_turn_waits_for_nobody_and_nobody_for_it():
    def aside():
        with without_query_lock(), query_lock(), released():
            is_beside.set()
            assert is_done.wait(timeout=300)

    def first():
        with query_lock():
            assert is_beside.wait(timeout=300)

    def second():
        assert is_beside.wait(timeout=300)
        with query_lock():
            is_done.set()

    is_beside, is_done = threading.Event(), threading.Event()
    run_all([first, aside, second])


def test_others_have_their_turn_where_one_lets_go_of_it():
    is_out, is_done = threading.Event(), threading.Event()

    def long():
        with query_lock():
            with released():
                is_out.set()
                assert is_done.wait(timeout=300)
            found.append("long")

    def short():
        assert is_out.wait(timeout=300)
        with query_lock():
            found.append("short")
        is_done.set()

    found = []
    run_all([long, short])
    assert found == ["short", "long"]


def test_who_waits_has_its_turn_between_two_steps_of_long_work():
    began, order = threading.Event(), []

    def long():
        with query_lock():
            began.set()
            wait_until_in_line(1)
            pause()
            order.append("long")

    def short():
        assert began.wait(timeout=300)
        with query_lock():
            order.append("short")

    run_all([long, short])
    assert order == ["short", "long"]
    with deadline(-1), pytest.raises(DeadlineError):
        pause()


def test_who_comes_first_is_served_first():
    found = []

    def ask(number):
        with query_lock():
            found.append(number)

    with query_lock():
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
        for number, thread in enumerate(threads):
            thread.start()
            wait_until_in_line(number + 1)
    for thread in threads:
        thread.join(timeout=300)
    assert found == list(range(5))


def test_an_error_gives_the_turn_back(never_lost):
    found = []
    with pytest.raises(ZeroDivisionError), query_lock():
        raise ZeroDivisionError
    run_all([lambda: ask_once(found)])
    with pytest.raises(ZeroDivisionError), query_lock(), released():
        raise ZeroDivisionError
    run_all([lambda: ask_once(found)])
    with released():  # of one that has no turn
        run_all([lambda: ask_once(found)])
    assert found == [1] * 3


# --- what is interrupted ---


@pytest.fixture
def soon_lost(monkeypatch):
    monkeypatch.setattr(turns, "LOST", 0.02)


def test_an_interrupt_while_waiting_leaves_the_queue(never_lost):
    order, holds, ends = [], threading.Event(), threading.Event()

    def hold():
        with query_lock():
            holds.set()
            ends.wait(timeout=300)
            order.append("holder")

    def later():
        with query_lock():
            order.append("later")

    holder, last = threading.Thread(target=hold), threading.Thread(target=later)
    holder.start()
    assert holds.wait(timeout=300)
    interrupter = threading.Thread(target=interrupt_who_waits, args=[threading.main_thread()])
    interrupter.start()
    with pytest.raises(KeyboardInterrupt), query_lock():
        order.append("interrupted")
    last.start()
    ends.set()
    for thread in (interrupter, holder, last):
        thread.join(timeout=300)
    run_all([lambda: ask_once(order)])
    assert order == ["holder", "later", 1]


def interrupt_who_waits(thread):
    """Send Ctrl-C to a thread as soon as it waits in the queue."""
    wait_until_in_line(1)
    signal.pthread_kill(thread.ident, signal.SIGINT)


def test_a_turn_that_does_not_end_is_lost(soon_lost):
    found, holds, ends = [], threading.Event(), threading.Event()

    def hold():
        with query_lock():
            holds.set()
            ends.wait(timeout=300)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holds.wait(timeout=300)
    run_all([lambda: ask_once(found)] * 3)
    assert found == [1] * 3
    ends.set()
    holder.join(timeout=300)
    run_all([lambda: ask_once(found)])
    assert found == [1] * 4


def test_a_place_that_nobody_leaves_is_passed(soon_lost):
    with query_lock():
        turns._waiting.append(turns._Turn())
        turns._waiting[0].comes = threading.Lock()
        turns._waiting[0].comes.acquire()
    found = []
    run_all([lambda: ask_once(found)] * 3)
    assert found == [1] * 3


def ask_once(found):
    with query_lock():
        with released():
            pass
        pause()
        found.append(1)


def test_interrupts_at_random_moments_keep_nobody_waiting(soon_lost):
    chance = random.Random(1)

    def ask():
        """Ask until an interrupt, which ends the thread."""
        with suppress(KeyboardInterrupt):
            while not ends.is_set():
                with query_lock(), one_blas_thread():
                    with released():
                        pass
                    pause()
                    has_asked.set()
            uninterrupted.append(1)

    n_blas_threads = blas_threads()
    ends, has_asked, uninterrupted = threading.Event(), threading.Event(), []
    for _ in range(10):
        asking = [threading.Thread(target=ask) for _ in range(4)]
        has_asked.clear()
        for thread in asking:
            thread.start()
        assert has_asked.wait(timeout=300)
        for thread in asking:
            time.sleep(chance.uniform(0, 0.004))
            raise_in(thread, KeyboardInterrupt)
        for thread in asking:
            thread.join(timeout=300)
        assert not any(thread.is_alive() for thread in asking)
    assert not uninterrupted
    ends.set()
    found = []
    run_all([lambda: ask_once(found)] * 3)
    assert found == [1] * 3
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == n_blas_threads


def raise_in(thread, error):
    """Have a thread raise an error between two of its next instructions."""
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread.ident), ctypes.py_object(error))
