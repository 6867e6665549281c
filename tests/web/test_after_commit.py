"""What is published is answered as done, whatever fails afterwards; no answer names a path."""

import json
import logging
import sqlite3

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store import Workspace
from qkvsearch.text.pretrained import encoding_cache

ITEMS = pd.DataFrame({"id": list("abcd"), "title": ["Red kettle", "Blue pot", "Lamp", "Anchor"]})
LOG = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": list("abb")})
TOO_LONG = "x" * 11_000_000


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding_cache, "cache_folder", lambda: tmp_path / "cache")
    encoding_cache._warned.clear()
    path = tmp_path / "ws"
    qkv.build(path, items=ITEMS, interactions=LOG, encoder="corpus").close()
    return path


def damaged_cache():
    encoding_cache.path().parent.mkdir()
    encoding_cache.path().write_bytes(b"no database" * 1000)


def test_a_damaged_cache_of_encodings_does_not_undo_a_change(path, asking):
    with asking(path) as client:
        damaged_cache()
        answer = client.delete("/api/v1/items/d")
        assert answer.status_code == 200
        assert answer.json()["removed"] == 1
        assert any("cache" in note for note in answer.json()["notes"])
        assert str(path.parent) not in answer.text
        assert client.get("/api/v1/items/d").status_code == 404
        encoding_cache.path().write_bytes(b"no database" * 1000)
        answer = client.put("/api/v1/items", json=[{"id": "a", "title": "Green kettle"}])
        assert (answer.status_code, answer.json()["replaced"]) == (200, 1)
        assert str(path.parent) not in answer.text


def test_a_build_that_cannot_be_opened_yet_is_a_line_of_the_log(path, monkeypatch, caplog):
    with qkv.open(path) as engine:
        opened = Workspace.open

        def fail(workspace):
            if not workspace_is_writing():
                raise WorkspaceError("no file descriptor is left")
            return opened(workspace)

        def workspace_is_writing():
            from qkvsearch.store.locks import is_writing

            return is_writing(path)

        monkeypatch.setattr(Workspace, "open", fail)
        assert engine.remove("d").removed == 1
        assert "no file descriptor" in caplog.text
        with pytest.raises(WorkspaceError, match="no file descriptor"):
            engine.search("anchor")
        monkeypatch.undo()
        assert [hit.id for hit in engine.search("kettle", k=1)] == ["a"]
        assert engine.n_items == 3


def test_a_bug_in_a_merge_is_an_error(path, monkeypatch):
    monkeypatch.setattr("qkvsearch.learn.merge.merged_contents", _raise(TypeError("a bug")))
    with qkv.open(path) as engine, pytest.raises(TypeError, match="a bug"):
        engine.remove(["c", "d"])


@pytest.mark.parametrize(
    "error", [MemoryError(), DamagedError("items.db", "cut"), sqlite3.OperationalError("locked")]
)
def test_a_merge_that_fails_by_circumstances_is_a_note(path, monkeypatch, error):
    monkeypatch.setattr("qkvsearch.learn.merge.merged_contents", _raise(error))
    with qkv.open(path) as engine:
        assert any("merged" in note for note in engine.remove(["c", "d"]).notes)


def test_a_failed_merge_is_a_note_without_a_path(path, monkeypatch, caplog):
    monkeypatch.setattr("qkvsearch.learn.merge.merged_contents", _raise(OSError(28, "full", path)))
    with qkv.open(path) as engine:
        done = engine.remove(["c", "d"])
        assert (done.removed, engine.n_items) == (2, 2)
    assert any("merged" in note for note in done.notes)
    assert str(path) not in str(done.notes)
    assert str(path) in caplog.text


def test_leftovers_that_cannot_be_removed_do_not_undo_a_change(path, monkeypatch, caplog):
    with qkv.open(path) as engine:
        engine.remove("d")
        fails = _raise(PermissionError(13, "denied"))
        monkeypatch.setattr(Workspace, "_remove_leftovers", fails)
        engine.compact(drop_builds=True)
        assert len(engine.builds()) == 1
    assert "denied" in caplog.text


def _raise(error):
    def fail(*_, **__):
        raise error

    return fail


def test_an_answer_that_became_too_long_is_that_of_a_change(tmp_path, asking, monkeypatch):
    path = tmp_path / "ws"
    titles = [f"Lamp {n} " + "word " * 400 for n in range(4)]
    items = pd.DataFrame({"id": list("abcd"), "title": titles})
    qkv.build(path, items=items, interactions=LOG, encoder="corpus").close()
    monkeypatch.setattr("qkvsearch.web.api.responses.MAX_ANSWER", 1000)
    with asking(path) as client:
        body = {"interactions": [{"user": "ann", "item": item} for item in "cd"]}
        recorded = client.post("/api/v1/record", json=body)
        assert recorded.status_code == 200
        assert recorded.json()["total"] == 2
        assert recorded.json()["batch"] == 1
        assert client.delete("/api/v1/record/1").status_code == 200
        assert client.delete("/api/v1/record/1").status_code == 404
        assert client.delete("/api/v1/items/a").json()["removed"] == 1


def test_no_answer_has_a_path_of_the_machine(tiny_bert, tmp_path, asking):
    path = tmp_path / "ws"
    qkv.build(path, items=ITEMS, interactions=LOG, encoder=str(tiny_bert)).close()
    addresses = (
        "info",
        "builds",
        "health",
        "metrics",
        "items",
        "facets",
        "search?q=kettle&explain=true",
        "items/a",
        "recommend?user=ann",
        "similar?items=a",
        "attend?text=deep+sea",
        "map",
        "items/nothing",
        "users/nobody/history",
        "search?q=a&where=nothing",
        "attend?text=a&encoder=x",
    )
    with asking(path) as client:
        assert client.get("/api/v1/info").json()["encoder"] == tiny_bert.name
        pages = ("/", "/recommend", "/map", "/attend", "/inside", "/docs", "/openapi.json")
        for address in (*(f"/api/v1/{address}" for address in addresses), *pages):
            text = client.get(address).text
            for folder in (path.parent, tiny_bert.parent):
                assert str(folder) not in text, address


def test_lost_settings_are_reported_without_the_path(path):
    manifest = next(path.glob("builds/*/manifest.json"))
    manifest.write_bytes(b"{}")
    qkv.build(path, items=ITEMS, encoder="corpus").close()
    with qkv.open(path) as engine:
        lines = json.dumps(engine.info()["rows"])
    assert "manifest.json" in lines
    assert str(path) not in lines


def test_a_damaged_map_is_computed_again_and_the_log_says_so(path, caplog):
    with qkv.open(path) as engine:
        before = engine.map("lsa").positions
        (file,) = path.glob("builds/*/map-lsa.json")
        file.write_text("{}")
        caplog.set_level(logging.WARNING)
    with qkv.open(path) as engine:
        assert (engine.map("lsa").positions == before).all()
    assert str(file) in caplog.text
    with qkv.open(path) as engine:
        caplog.clear()
        engine.map("lsa")
        assert caplog.text == ""


def test_a_damaged_build_is_an_error_before_a_change(path):
    next(path.glob("builds/*/items.db")).write_bytes(b"")
    with pytest.raises(DamagedError), qkv.open(path) as engine:
        engine.remove("d")
