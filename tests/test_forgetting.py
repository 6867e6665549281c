"""A person is forgotten, wherever the workspace has them, and nothing else is."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import build
from qkvsearch.errors import DataError, UnknownIdError
from qkvsearch.store import Workspace
from qkvsearch.store import workspace as workspace_module
from qkvsearch.store.logged_searches import read_log
from qkvsearch.store.records import RecordsDatabase
from qkvsearch.store.search_log import SearchLog

ITEMS = pd.DataFrame({"id": ["a", "b", "c"], "title": ["red fox", "blue sea", "green tea"]})


def log_of(*users):
    return pd.DataFrame([(user, item) for user in users for item in "abc"], columns=["user", "id"])


def having(path, text):
    files = (file for file in path.rglob("*") if file.is_file())
    return [file.name for file in files if text.encode().lower() in file.read_bytes().lower()]


@pytest.mark.parametrize("user", ["text", "title", "corpus", "1"])
def test_an_id_that_is_a_word_of_the_facts_takes_no_fact_along(tmp_path, user):
    engine = build(tmp_path, items=ITEMS, interactions=log_of(user, "zoe"), encoder="corpus")
    before = engine.info()
    engine.forget(user)
    after = engine.info()
    for name in ("columns", "searched_columns", "encoder", "qkvsearch"):
        assert after[name] == before[name]
    assert after["interaction_columns"] == before["interaction_columns"]
    assert engine.add(pd.DataFrame({"id": ["d"], "title": ["red tea"]})).added == 1


def test_who_is_in_a_former_build_alone_can_be_forgotten(tmp_path):
    build(tmp_path, items=ITEMS, interactions=log_of("secretperson", "zoe"), encoder="corpus")
    engine = build(tmp_path, items=ITEMS, interactions=log_of("zoe", "bob"), encoder="corpus")
    with pytest.raises(UnknownIdError):
        engine.forget("secretperso")
    assert engine.forget("secretperson").builds == 1
    assert having(tmp_path, "secretperson") == []
    assert len(engine.builds()) == 1


@pytest.mark.parametrize(
    ("owner", "step"),
    [(RecordsDatabase, "forget"), (Workspace, "finish_erasing"), (Workspace, "_remove_leftovers")],
)
def test_to_forget_goes_on_where_it_was_interrupted(tmp_path, monkeypatch, owner, step):
    people = log_of("secretperson", "zoe")
    engine = build(tmp_path, items=ITEMS, interactions=people, encoder="corpus")
    engine.record("secretperson", "a")

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        with pytest.raises(KeyboardInterrupt):
            engine.forget("secretperson")
    with qkv.open(tmp_path) as again:
        again.forget("secretperson")
    assert having(tmp_path, "secretperson") == []


def test_no_part_of_a_long_id_stays_in_the_facts(tmp_path):
    user = "secretperson" * 20
    people = pd.concat([log_of(user), log_of(user.upper(), "zoe")])
    engine = build(tmp_path, items=ITEMS, interactions=people, encoder="corpus")
    assert any("ids differ in case alone: 1 user" in line for line in engine.info()["rows"])
    engine.forget(user)
    engine.forget(user.upper())
    assert having(tmp_path, "secretperson") == []


def test_folded_ids_are_forgotten_in_every_spelling(tmp_path):
    people = pd.concat([log_of("SecretPerson"), log_of("secretperson", "zoe")])
    columns = qkv.Columns(fold_ids=True)
    engine = build(tmp_path, items=ITEMS, interactions=people, columns=columns, encoder="corpus")
    engine.record("SECRETperson", "a")
    engine.forget("sEcretperson")
    assert having(tmp_path, "secretperson") == []


def test_an_id_that_only_the_facts_have_beside_the_records_leaves_them(tmp_path):
    people = pd.concat([pd.DataFrame({"user": ["secretperson"], "id": ["?"]}), log_of("zoe")])
    engine = build(tmp_path, items=ITEMS, interactions=people, encoder="corpus")
    engine.record("secretperson", "a")
    engine.forget("secretperson")
    assert having(tmp_path, "secretperson") == []


def test_what_could_not_be_removed_is_said(tmp_path, monkeypatch):
    people = log_of("secretperson", "zoe")
    engine = build(tmp_path, items=ITEMS, interactions=people, encoder="corpus")
    monkeypatch.setattr(workspace_module.shutil, "rmtree", lambda *_, **__: None)
    _learned, build_left = engine.forget("secretperson").notes
    assert "could not be removed" in build_left


@pytest.mark.parametrize("user", ["", "  ", "\u3000"])
def test_a_blank_id_forgets_no_search_of_others(tmp_path, user):
    with qkv.build(tmp_path / "ws", items=pd.DataFrame({"id": [1], "title": ["Tent"]})) as engine:
        log = SearchLog(tmp_path / "ws", 30, print)
        assert log.add_search("v", "tent", total=1, shown=[1])
        with pytest.raises(DataError, match="`user` must be an id that is not blank"):
            engine.forget(user)
        assert [search.query for search in read_log(tmp_path / "ws").searches] == ["tent"]
