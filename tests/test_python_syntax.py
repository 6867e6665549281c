"""Threads that parse Python's syntax at the same time do not disturb one another.

Before Python 3.13, CPython counts the depth of all their trees in one place. Where the garbage
collector lets another thread go on in between, it says that an array or a cell cannot be read.
"""

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from qkvsearch.lessons.runner import names_of
from qkvsearch.store.array_files import StoredFile, read_array, write_array
from qkvsearch.tables.columns.lists import read_lists
from qkvsearch.tables.files.repeated_keys import python_value

N_THREADS = 4


@pytest.fixture
def threads_change_often():
    """The garbage collector runs all the time, and another thread each time."""

    def give_way(*_):
        time.sleep(0)

    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("what", ["an array", "an object", "a list", "a lesson"])
@pytest.mark.slow
def test_threads_that_parse_do_not_disturb_one_another(tmp_path, threads_change_often, what):
    stored = StoredFile(tmp_path / "a.npy", write_array(tmp_path / "a.npy", np.ones((2, 3))))
    entries = [f"entry {i}" for i in range(60)]
    objects = [{"id": i, "at": (i, 2)} for i in range(30)]
    cells, counts = pd.Series([str(entries[i:]) for i in range(30)]), np.ones(30, np.int64)
    read = {
        "an array": lambda: read_array(stored).shape == (2, 3),
        "an object": lambda: python_value(str(objects)) == objects,
        "a list": lambda: read_lists(cells, counts).values[0] == "|".join(entries),
        "a lesson": lambda: names_of("x = [y for y in z if y > 2]")[1] == ["x"],
    }[what]

    n_times = {"an array": 250, "an object": 25, "a list": 10, "a lesson": 250}[what]

    def again():
        return all(read() for _ in range(n_times))

    with ThreadPoolExecutor(N_THREADS) as pool:
        runs = [pool.submit(again) for _ in range(N_THREADS)]
        assert all(run.result() for run in runs)
