"""What every test and every example of a docstring runs under: no model of this machine."""

from __future__ import annotations

import gc
import os
import signal

import pytest

# Where the person who runs the tests keeps models, if they said.
OWN_MODELS = os.environ.get("QKVSEARCH_MODELS")


@pytest.fixture(scope="session", autouse=True)
def no_models(tmp_path_factory):
    """An empty folder of models, and NumPy, so that no result depends on what is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QKVSEARCH_MODELS", str(tmp_path_factory.mktemp("models")))
        patch.setenv("QKVSEARCH_RUNTIME", "numpy")
        patch.setenv("QKVSEARCH_MAX_CACHE", "0")
        yield


@pytest.fixture(scope="module")
def own_models(no_models):
    """The models of the person who runs the tests, for a module that is skipped without them."""
    with pytest.MonkeyPatch.context() as patch:
        if OWN_MODELS is None:
            patch.delenv("QKVSEARCH_MODELS")
        else:
            patch.setenv("QKVSEARCH_MODELS", OWN_MODELS)
        yield


def pytest_configure():
    """Heed Ctrl-C, which tests send: a shell starts what runs in the background without it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep modules and collected tests, which stay until the end, out of garbage collection.

    They are 700,000 objects, and every full collection would go through all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
