"""An engine over a workspace that changes, is rolled back, or is damaged."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pandas as pd
import pytest

from qkvsearch.engine import Engine
from qkvsearch.engine import info as damage
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.learn import merge as merging
from qkvsearch.rank.text_search import TextSearch
from qkvsearch.store import Workspace

MORE = pd.DataFrame({"id": range(60, 70), "title": "copper kettle", "made": 2020})
# Every question, and what of its answer can be compared.
QUESTIONS = {
    "search": lambda engine: engine.search("red apple", explain=True).to_records(),
    "search for": lambda engine: engine.search("apple", user=101).to_records(),
    "search where": lambda engine: engine.search("apple", where="made > 2001").to_records(),
    "recommend": lambda engine: engine.recommend(user=101, explain=True).to_records(),
    "similar": lambda engine: engine.similar("red apple").to_records(),
    "items": lambda engine: engine.items.list(fields="made").to_records(),
    "show": lambda engine: engine.show(1),
    "users": lambda engine: engine.users.list().to_records(),
    "history": lambda engine: engine.history(101).to_records(),
    "records": lambda engine: engine.records().to_records(),
    "attend": lambda engine: engine.attend("red apple").weights.tolist(),
    "info": lambda engine: {**engine.info(), "workspace": ""},
}


@pytest.fixture(scope="module")
def answers(shop):
    return {name: ask(shop) for name, ask in QUESTIONS.items()}


@pytest.fixture(autouse=True, scope="module")
def never_merged_by_itself():
    """The shop has so few items that two more would be too many for a segment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MAX_CHANGED_SHARE", 9)
        yield


@pytest.fixture
def path(shop_path, tmp_path):
    return shutil.copytree(shop_path, tmp_path / "shop")


# --- what is published while an engine is open ---


def test_an_engine_answers_as_it_did_whatever_is_published(path, answers):
    with Engine(path) as early, Engine(path) as writer:
        for row in range(len(MORE)):
            writer.add(MORE[row : row + 1])
        assert writer.compact(drop_builds=True).segments == 11
        assert len(writer.builds()) == 1
        # Each is asked for the first time now.
        assert {name: ask(early) for name, ask in QUESTIONS.items()} == answers
        assert len(list(path.glob("builds/*"))) == 2
    with Engine(path) as writer:
        writer.compact(drop_builds=True)
    assert len(list(path.glob("builds/*"))) == 1


def test_an_engine_that_follows_answers_from_the_newest_build(path):
    with Engine(path, follow=True) as engine, Engine(path) as other, Engine(path) as writer:
        assert not [hit for hit in engine.search("kettle") if hit.id == 60]
        writer.add(MORE)
        assert engine.search("kettle")[0].id == 60
        assert 60 in engine.items
        assert 60 not in other.items
        writer.rollback()
        assert 60 not in engine.items


def test_a_question_that_runs_keeps_the_build_it_began_with(path, monkeypatch):
    fused = TextSearch.fused
    with Engine(path, follow=True) as engine, ThreadPoolExecutor(1) as another:

        def slow(*args, **kwargs):
            monkeypatch.setattr(TextSearch, "fused", fused)
            with Engine(path) as writer:
                writer.remove([1, 2, 3])
            assert another.submit(lambda: engine.n_items).result() == 7
            return fused(*args, **kwargs)

        monkeypatch.setattr(TextSearch, "fused", slow)
        assert engine.search("red apple", explain=True)[0].id == 1
        assert 1 not in [hit.id for hit in engine.search("red apple")]


def test_who_has_a_build_open_that_held_a_person_is_told_to_open_it_again(path):
    with Engine(path) as early, Engine(path, follow=True) as follower, Engine(path) as writer:
        writer.forget(300)
        with pytest.raises(WorkspaceError, match=r"was removed.*open the workspace again"):
            early.search("apple")
        assert follower.search("apple")[0].title
        assert 300 not in follower.users
        assert 300 not in writer.users


# --- undo ---


def test_builds_are_listed_and_every_one_of_them_can_be_returned_to(path):
    with Engine(path) as engine:
        engine.add(MORE[:2])
        engine.remove([60, 1])
        engine.record(101, 7, 4)
        engine.compact()
        listed = engine.builds()
        assert [row["command"] for row in listed] == ["compact", "remove", "add", "build"]
        assert [row["items"] for row in listed] == [10, 10, 12, 10]
        assert [row["segments"] for row in listed] == [1, 3, 2, 1]
        assert [row["current"] for row in listed] == [True, False, False, False]
        folders = {row["id"]: path / "builds" / row["id"] for row in listed}
        files = {f.stat().st_ino: f.stat().st_size for d in folders.values() for f in d.iterdir()}
        assert sum(row["megabytes"] for row in listed) == pytest.approx(
            sum(files.values()) / 1e6, abs=0.02
        )
        known = [(False, False), (True, True), (False, True)]
        for row, is_there in zip(listed[1:], known, strict=True):
            assert engine.rollback().name == row["id"]
            assert (60 in engine.items, 1 in engine.items) == is_there
            assert next(each for each in engine.builds() if each["current"])["id"] == row["id"]
        assert len(engine.records()) == 1
        with pytest.raises(WorkspaceError, match="no build before the current one"):
            engine.rollback()
        assert engine.rollback(listed[0]["id"]).items == 10
        with pytest.raises(WorkspaceError, match=f"no build '1999'.*{listed[1]['id']}"):
            engine.rollback("1999")


# --- damage ---


def names(path):
    """The files of a workspace, with the places of builds by their order."""
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def recorded_path(shop_path, tmp_path_factory):
    """The shop with a segment and with records, so that there is every kind of file."""
    path = shutil.copytree(shop_path, tmp_path_factory.mktemp("recorded") / "shop")
    with Engine(path) as engine:
        engine.add(MORE[:2])
        engine.remove([2])
        engine.record(101, 7, 4)
    return path


@pytest.fixture(scope="module")
def sound(recorded_path):
    with Engine(recorded_path) as engine:
        return {name: ask(engine) for name, ask in QUESTIONS.items()}


@pytest.mark.slow
def test_each_damaged_file_is_named_and_no_answer_is_another(recorded_path, sound, tmp_path):
    told = set()
    for number, name in enumerate(names(recorded_path)):
        if name.endswith(".lock"):
            continue
        path = shutil.copytree(recorded_path, tmp_path / str(number))
        damaged = bytearray((path / name).read_bytes())
        damaged[len(damaged) * 2 // 3] ^= 0x55
        (path / name).write_bytes(damaged)
        with pytest.raises(DamagedError, match=re.escape(f"1 file is damaged: {name} (")):
            damage.verify(Workspace(path))
        with suppress(DamagedError), Engine(path) as engine:
            for question, ask in QUESTIONS.items():
                answer = answered(ask, engine)
                if isinstance(answer, DamagedError):
                    assert str(answer.file) == str(path / name), question
                    told.add(question)
                else:
                    assert answer == sound[question], f"{name}: another answer to {question}"
        shutil.rmtree(path)
    assert told == {*QUESTIONS} - {"items"}


def answered(ask, engine):
    """The answer, or that something is damaged."""
    try:
        return ask(engine)
    except DamagedError as error:
        return error


def test_all_that_is_damaged_is_told_at_once(path):
    (build,) = path.glob("builds/*")
    for name in ("lsa.keys.npy", "ratings.item_biases.npy"):
        (build / name).write_bytes(b"")
    with Engine(path) as engine, pytest.raises(DamagedError) as told:
        engine.info(verify=True)
    for said in (
        "2 files are damaged", "lsa.keys.npy (0 bytes instead of", "ratings.item_biases",
        "run qkvsearch repair",
    ):  # fmt: skip
        assert said in str(told.value)
