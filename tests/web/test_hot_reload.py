"""What a server answers from while builds are published: its own, until the next one is ready."""

import logging
import threading
import time
from types import SimpleNamespace

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="needs qkvsearch[web]")

from qkvsearch import Engine, build
from qkvsearch.errors import DamagedError
from qkvsearch.learn import merge
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.search import search
from qkvsearch.web import hot_reload
from qkvsearch.web.hot_reload import HotReloadEngine, warm

LOG = pd.DataFrame({"user": [7, 7, 8, 8], "item": [1, 2, 2, 3]})
MORE = pd.DataFrame({"id": [4], "title": ["green kite"]})
WITHIN = 60


@pytest.fixture
def path(tmp_path):
    items = {"id": [1, 2, 3], "title": ["red kite", "blue kite", "steel kettle"]}
    build(tmp_path / "ws", items=pd.DataFrame(items), interactions=LOG, encoder="corpus").close()
    return tmp_path / "ws"


@pytest.fixture
def engine(path, monkeypatch):
    monkeypatch.setattr(hot_reload, "INTERVAL", 0.01)
    monkeypatch.setattr(hot_reload, "RETRY_INTERVAL", 2 * WITHIN)
    with HotReloadEngine(path) as engine:
        engine.follow()
        yield engine


def until(holds):
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_published_build_answers_soon(engine, path):
    with Engine(path) as writer:
        writer.add(MORE)
        until(lambda: 4 in engine.items)
        writer.rollback()
        until(lambda: 4 not in engine.items)


def test_what_is_to_be_done_once_a_build_is_warm_is_done_then(path, monkeypatch):
    done = []
    monkeypatch.setattr(hot_reload, "warm", lambda build, ends: done.append("warm"))
    with HotReloadEngine(path) as engine:
        engine.follow(lambda: done.append("then"))
        until(lambda: "then" in done)
    assert done == ["warm", "then"]


def test_nobody_waits_until_it_is_open_and_has_answered(engine, path, monkeypatch):
    may_go_on, asked = threading.Event(), []

    def slowly(build, ends):
        warm(build, ends)
        asked.append(build)
        assert may_go_on.wait(WITHIN)

    monkeypatch.setattr(hot_reload, "warm", slowly)
    with Engine(path) as writer:
        writer.add(MORE)
    until(lambda: asked)
    assert asked[0].n_items == 4
    assert engine.n_items == 3
    assert {hit.id for hit in engine.search("kite")} == {1, 2}
    may_go_on.set()
    until(lambda: engine.n_items == 4)
    assert any(engine.snapshot is build.snapshot for build in asked)


def test_a_question_waits_where_its_build_was_deleted(path):
    with HotReloadEngine(path) as engine, Engine(path) as writer:
        writer.add(MORE)
        assert engine.n_items == 3  # nobody has looked
        writer.forget(7)
        assert 7 not in engine.users
        assert engine.n_items == 4


def test_what_is_recorded_is_seen_at_once(path):
    with HotReloadEngine(path) as engine, Engine(path) as other:
        other.record(7, 3)
        assert next(row["id"] for row in engine.history(7)) == 3


def test_its_own_change_is_not_undone_by_what_was_being_opened(engine, path, monkeypatch):
    may_go_on, is_open = threading.Event(), threading.Event()

    def slowly(build, ends):
        is_open.set()
        assert may_go_on.wait(WITHIN)

    monkeypatch.setattr(hot_reload, "warm", slowly)
    monkeypatch.setattr(merge, "MAX_CHANGED_SHARE", 9)  # so that what is opened stays a build
    with Engine(path) as writer:
        writer.add(MORE)
    assert is_open.wait(WITHIN)
    engine.remove([1, 2])
    may_go_on.set()
    monkeypatch.setattr(hot_reload, "warm", warm)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        assert list(engine.items) == [3, 4]


def test_one_that_cannot_be_opened_is_told_of_and_the_former_answers(
    engine, path, monkeypatch, caplog
):
    def broken(workspace):
        raise OSError("disk on fire")

    monkeypatch.setattr(hot_reload, "RETRY_INTERVAL", 0.01)
    with caplog.at_level(logging.ERROR, "qkvsearch.web"):
        monkeypatch.setattr(hot_reload, "LoadedBuild", SimpleNamespace(open=broken))
        with Engine(path) as writer:
            writer.add(MORE)
        until(lambda: "disk on fire" in caplog.text)
    assert {hit.id for hit in engine.search("kite")} == {1, 2}
    monkeypatch.setattr(hot_reload, "LoadedBuild", LoadedBuild)
    until(lambda: engine.n_items == 4)


def test_a_truncated_file_is_damage_and_a_removed_one_can_be_read_on(path, monkeypatch):
    monkeypatch.setattr(hot_reload, "INTERVAL", 0)
    with HotReloadEngine(path) as engine:
        engine.search("kite")
        files = [file.path for file in engine.current_build.snapshot.files]
        file = next(path for path in files if path.suffix == ".npy")
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        with pytest.raises(DamagedError, match=r"truncated"):
            engine.search("kite")
        file.unlink()
        assert {hit.id for hit in engine.search("kite")} == {1, 2}


def test_it_closes_once_nothing_reads_its_files(path, monkeypatch):
    ended = []

    def slowly(build, ends):
        assert ends.wait(WITHIN)
        time.sleep(0.1)
        assert search(build, SearchQuestion(query="kite"))
        ended.append("reading")

    monkeypatch.setattr(hot_reload, "warm", slowly)
    monkeypatch.setattr(LoadedBuild, "close", lambda build: ended.append("the build"))
    with HotReloadEngine(path) as engine:
        engine.follow()
    assert ended == ["reading", "the build"]


@pytest.mark.slow
def test_a_catalog_of_one_long_title_is_warmed(tmp_path):
    items = pd.DataFrame({"id": ["a,b"], "title": ["word " * 100_000]})
    with build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        warm(engine.current_build, threading.Event())
        assert engine.n_items == 1


def test_a_request_is_answered_from_one_build(path):
    with HotReloadEngine(path) as engine, Engine(path) as writer:
        with engine.one_build():
            assert engine.n_items == 3
            writer.add(MORE)
            writer.compact(drop_builds=True)
            assert engine.n_items == 3
            assert 4 not in engine.items
        assert engine.n_items == 4


def test_a_request_keeps_its_build_open_until_it_ends(engine, path):
    with engine.one_build():
        (segment,) = engine.catalog.segments
        with Engine(path) as writer:
            writer.add(MORE)
        until(lambda: engine._build.n_items == 4)
        assert not segment._is_closed
        assert engine.items[1]["title"] == "red kite"
    until(lambda: segment._is_closed)
    assert engine.items[4]["title"] == "green kite"


def test_what_a_request_changes_it_sees(path):
    with HotReloadEngine(path) as engine, engine.one_build():
        assert engine.n_items == 3
        engine.add(MORE)
        assert engine.n_items == 4
        assert 4 in engine.items
