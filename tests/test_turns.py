"""Turns: one thread at a time, first come, first served, whatever happens in one."""

import ctypes
import random
import signal
import threading
import time
from contextlib import suppress

import pytest

from qkvsearch._utils import query_lock as turns
from qkvsearch._utils import threads
from qkvsearch._utils.deadline import DeadlineError, deadline
from qkvsearch._utils.query_lock import pause, query_lock, released, without_query_lock
from qkvsearch._utils.threads import one_blas_thread

pytestmark = pytest.mark.skipif(not turns._HAS_GIL, reason="threads run at once here")


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
            while not turns._waiting:
                time.sleep(0.001)
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
            while len(turns._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(timeout=300)
    assert found == list(range(5))


def test_an_error_gives_the_turn_back():
    with pytest.raises(ZeroDivisionError), query_lock():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), query_lock(), released():
        raise ZeroDivisionError
    assert turns._current is None
    with released():  # of one that has no turn
        assert turns._current is None


# --- what is interrupted ---


@pytest.fixture
def soon_lost(monkeypatch):
    monkeypatch.setattr(turns, "LOST", 0.02)


def test_an_interrupt_while_waiting_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(turns, "LOST", 10.0)
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
    assert order == ["holder", "later"]
    assert turns._current is None
    assert not turns._waiting


def interrupt_who_waits(thread):
    """Send Ctrl-C to a thread as soon as it waits in the queue."""
    end = time.monotonic() + 300
    while not turns._waiting and time.monotonic() < end:
        time.sleep(0.001)
    signal.pthread_kill(thread.ident, signal.SIGINT)


def test_a_turn_that_nobody_ends_is_lost(soon_lost):
    turns._take(turns._Turn())  # by a thread that is interrupted before it can end it
    found = []
    run_all([lambda: ask_once(found)] * 3)
    assert found == [1] * 3
    assert turns._current is None


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
    with one_blas_thread():
        assert len(threads._callers) == 1
    assert not threads._saved_threads


def raise_in(thread, error):
    """Have a thread raise an error between two of its next instructions."""
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread.ident), ctypes.py_object(error))
