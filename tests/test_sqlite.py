"""The connections that all of the package makes."""

import gc
import weakref

import pytest

from qkvsearch._utils.sqlite import connect


@pytest.mark.slow
def test_a_connection_forgets_cursors_that_are_gone():
    """Python's connection has a list of weak references to its cursors."""

    def n_references():
        gc.collect()
        return sum(type(each) is weakref.ref for each in gc.get_objects())

    database = connect(":memory:")
    before = n_references()
    for _ in range(2000):
        database.execute("SELECT 1").fetchall()
        database.executemany("SELECT ?", [])
    assert n_references() - before < 1000
    database.close()
