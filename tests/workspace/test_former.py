"""Workspaces of former formats: read as they are, brought up to date by the first writer."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Timer

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.answers.answerable import UNKNOWN
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace import FORMAT_VERSION, Workspace
from qkvsearch.workspace.former import format4

FOLDER = Path(__file__).parent / "former"
FORMAT_4 = ["format4-text", "format4-whole", "format4-folded", "format4-things", "format4-first"]
OLDER = ["format1", "format2", "format3"]
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other modes")


@pytest.fixture(scope="module")
def make():
    """The script by which the workspaces were made."""
    spec = spec_from_file_location("make_former", FOLDER / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def unpacked(tmp_path):
    def unpack(name: str, folder: Path = tmp_path) -> Path:
        with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        return folder / name

    return unpack


def contents_of(workspace: Path) -> dict[str, bytes]:
    """Every file but locks and what SQLite makes for a reader."""
    passing = ("writer.lock", "records.lock", "workspace.db-shm")
    return {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and path.name not in passing and path.stat().st_size
    }


def assert_as_expected(found, name: str, **but) -> None:
    """As the code of its time answered: hits by id, since equal scores may change places between
    machines. but: facts that are something else by now.
    """
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    expected["info"] |= but
    found = json.loads(json.dumps(found))
    assert found["info"].pop("segments") == 1
    assert found.keys() == expected.keys()
    for question, answer in expected.items():
        if question in ("search zzz", "where zzz"):  # since then it is said why there is none
            answer = [*answer[:2], [UNKNOWN]]
        assert by_id(found[question]) == approximately(by_id(answer)), question


def by_id(answer):
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        hits, *others = answer
        return {hit["id"]: {**hit, "rank": 0} for hit in hits}, *others
    return answer


def approximately(value):
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-5)
    if isinstance(value, dict):
        return {key: approximately(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(approximately, value))
    return value


def upgrade(path: Path) -> None:
    with Workspace(path).writing("upgrade"):
        pass


# --- format 4: read, and upgraded ---


@pytest.mark.parametrize("name", FORMAT_4)
def test_format_4_answers_as_it_did_and_the_same_to_the_bit_when_it_is_upgraded(
    make, unpacked, name
):
    path = unpacked(name)
    before = contents_of(path)
    found = make.answers(path, name)
    assert_as_expected(found, name, language="english", language_chosen=None)
    assert Workspace(path).exists
    with qkvsearch.Engine(path) as engine:
        assert "older version" in engine.builds().notes[0]
    assert contents_of(path) == before
    upgrade(path)
    assert make.answers(path, name) == found
    with qkvsearch.Engine(path) as engine:
        assert engine.info(verify=True)["format"] == FORMAT_VERSION
        arrays = [entry for file, entry in engine.snapshot.files if file.suffix == ".npy"]
        assert all({"xxh3", "dtype", "shape"} <= entry.keys() for entry in arrays)
    assert not list(path.glob("workspace.db*"))
    assert len(list((path / "builds").iterdir())) == 1


KETTLE = {"id": "f20", "title": "Kettle", "year": 2020, "genres": "War", "plot": "a kettle"}
FIRST_WRITERS = {
    "record": lambda engine: engine.record("ada", "f05", 3),
    "undo": lambda engine: engine.undo_record(),
    "add": lambda engine: engine.add(pd.DataFrame([KETTLE])),
    "remove": lambda engine: engine.remove(["f02"]),
    "learn": lambda engine: engine.learn(),
    "compact": lambda engine: engine.compact(),
    "forget": lambda engine: engine.forget("ben"),
    "reset_tuning": lambda engine: engine.reset_tuning(),
}


SLOW = {"learn": pytest.mark.slow}


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=SLOW.get(name, ())) for name in FIRST_WRITERS]
)
def test_every_writer_upgrades_first_and_takes_all_over(unpacked, command):
    path = unpacked("format4-text")
    with qkvsearch.Engine(path) as engine:
        before = engine.info()
        FIRST_WRITERS[command](engine)
        recorded = {"record": 6, "undo": 4, "learn": 0}.get(command, 5)
        assert engine.info()["recorded"] == recorded
        if command == "record":
            assert engine.history("ada")[0]["id"] == "f05"
    with qkvsearch.Engine(path) as engine:
        after = engine.info()
        assert (after["format"], after["recorded"]) == (FORMAT_VERSION, recorded)
        assert after["tuned"] == (None if command == "reset_tuning" else before["tuned"])
        assert after["columns"] == before["columns"]
        first = engine.builds()[-1]["command"]
        assert first == ("forget" if command == "forget" else "upgrade")
        engine.remove(["f11"])  # which no longer waits for those who read format 4
    assert not list(path.glob("workspace.db*"))
    if command == "forget":
        assert not [name for name, content in contents_of(path).items() if b"ben" in content]


def test_numbers_of_records_go_on_and_batches_stay_what_was_recorded_together(unpacked):
    path = unpacked("format4-text")
    with closing(sqlite3.connect(path / "workspace.db")) as db, db:
        db.execute("DELETE FROM recorded WHERE number = 5")  # as its `record --undo` did
    with qkvsearch.Engine(path) as engine:
        engine.record("ada", "f05", 3)
        assert [row["number"] for row in engine.records()] == [6, 4, 3, 2, 1]
        assert [len(engine.undo_record()) for _ in range(3)] == [1, 3, 1]
    first = unpacked("format4-first")  # whose version knew of no batches
    with qkvsearch.Engine(first) as engine:
        assert [len(engine.undo_record()) for _ in range(2)] == [1, 1]


def test_who_opens_format_4_while_it_is_upgraded_finds_what_it_has_become(unpacked, monkeypatch):
    path = unpacked("format4-text")
    read = format4.read_current

    def overtaken(*args):
        found = read(*args)
        monkeypatch.undo()
        upgrade(path)
        return found

    monkeypatch.setattr(format4, "read_current", overtaken)
    with qkvsearch.Engine(path) as engine:
        assert engine.info()["format"] == FORMAT_VERSION


def test_a_database_that_is_a_link_is_not_followed(unpacked):
    path = unpacked("format4-text")
    (path / "workspace.db").rename(path.with_name("elsewhere.db"))
    (path / "workspace.db").symlink_to(path.with_name("elsewhere.db"))
    for use in (qkvsearch.Engine, upgrade):
        with pytest.raises(DamagedError, match="it is a link"):
            use(path)


def test_a_reader_that_opened_format_4_answers_on_beside_the_upgrade(make, unpacked):
    path = unpacked("format4-whole")
    with qkvsearch.Engine(path) as reader:
        reader.search("tea")  # opens some arrays, and by far not all
        upgrade(path)
        before = reader.recommend(user="7", where="year > 1960", explain=True).to_records()
        with qkvsearch.Engine(path) as engine:
            assert (
                engine.recommend(user="7", where="year > 1960", explain=True).to_records() == before
            )
            engine.record("7", "9")
        assert [hit["id"] for hit in before if hit["id"] == 9] == [9]
        assert 9 not in [hit.id for hit in reader.recommend(user="7")]
        assert list(path.glob("workspace.db"))
    with qkvsearch.Engine(path) as engine:
        engine.remove([9])
    assert not list(path.glob("workspace.db*"))


@posix
@pytest.mark.parametrize("name", ["format4-text", "format4-things"])
def test_a_read_only_copy_answers_be_there_a_log_of_sqlite_or_not(
    make, unpacked, without_privileges, name
):
    with TemporaryDirectory() as folder:  # not tmp_path, whose parents are its owner's alone
        path = unpacked(name, Path(folder))
        assert (path / "workspace.db-wal").exists() == (name == "format4-text")
        expected = make.answers(path, name)
        for extra in ("-shm", "-wal"):
            if name != "format4-text" or extra == "-shm":
                Path(f"{path / 'workspace.db'}{extra}").unlink(missing_ok=True)
        everything = [Path(folder), *Path(folder).rglob("*")]
        for file in everything:
            file.chmod(0o555 if file.is_dir() else 0o444)
        try:
            with without_privileges():
                assert make.answers(path, name) == expected
                with pytest.raises(WorkspaceError, match="cannot write"):
                    upgrade(path)
        finally:
            for file in everything:
                file.chmod(0o755)


FULL = """
import resource, sys
import qkvsearch.engine
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
with qkvsearch.engine.Engine(sys.argv[1]) as engine:
    print([hit.id for hit in engine.search("tea in space")], len(engine.history("new one")))
    try:
        engine.record("ada", "f05")
    except qkvsearch.QkvError as error:
        print(type(error).__name__, error)
"""


@posix
def test_a_full_disk_keeps_nobody_from_searching_and_leaves_format_4(unpacked, qkv_process):
    path = unpacked("format4-text")
    before = contents_of(path)
    answer = qkv_process(path, code=FULL)
    assert answer.code == 0, answer.stderr
    found, refused = answer.stdout.splitlines()
    assert found.startswith("['f06', ")
    assert found.endswith(" 3")
    assert refused.startswith(f"WorkspaceError {path}")
    assert contents_of(path) == before


# --- interruptions ---


def answers_of(path: Path) -> list[object]:
    with qkvsearch.Engine(path) as engine:
        history = engine.history("new one").to_records()
        hits = engine.search("tea in space", user="ada").to_records()
        return [history, hits, engine.info()["recorded"]]


def killed_upgrade(path: Path, step: int) -> bool:
    """In a process that dies as it makes a file, links, syncs or renames for the `step`-th time;
    False where it comes to its end before.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    done = 0

    def dying(function):
        def counted(*args, **kwargs):
            nonlocal done
            done += 1
            if done == step:
                os._exit(9)
            return function(*args, **kwargs)

        return counted

    try:
        for name in ("mkdir", "link", "fsync", "replace", "rename", "unlink", "rmdir"):
            setattr(os, name, dying(getattr(os, name)))
        upgrade(path)
        os._exit(0)
    finally:
        os._exit(1)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@needs_fork
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_an_upgrade_that_is_killed_anywhere_leaves_a_workspace_that_answers(unpacked, every):
    path = unpacked("format4-text")
    kept = path.with_name("kept")
    shutil.copytree(path, kept)
    answers, original = answers_of(path), contents_of(kept)
    step, upgraded = 1, 0
    while killed_upgrade(path, step):
        is_upgraded = (path / "root.json").exists()
        upgraded += is_upgraded
        assert is_upgraded or contents_of(path).items() >= original.items()
        assert answers_of(path) == answers
        upgrade(path)
        with qkvsearch.Engine(path) as engine:
            engine.remove(["f11"])
            assert engine.info(verify=True)["recorded"] == answers[-1]
        assert not list(path.glob("workspace.db*"))
        assert len(list((path / "builds").iterdir())) == 2
        shutil.rmtree(path)
        shutil.copytree(kept, path)
        step += every
    assert step > 100
    assert upgraded
    assert answers_of(path) == answers


@needs_fork
def test_several_first_writers_at_once_wait_for_the_one_that_upgrades(unpacked):
    path = unpacked("format4-text")
    children = []
    for _ in range(4):
        children.append(os.fork())
        if not children[-1]:
            try:
                with qkvsearch.Engine(path) as engine:
                    engine.record("ada", "f05", 3)
                os._exit(0)
            finally:
                os._exit(1)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    with qkvsearch.Engine(path) as engine:
        assert engine.info(verify=True)["recorded"] == 9
        assert [build["command"] for build in engine.builds()] == ["upgrade"]


def test_a_writer_of_an_older_version_is_waited_for_and_then_finds_nothing_to_write_to(unpacked):
    path = unpacked("format4-text")
    row = "INSERT INTO recorded (user, item, time, batch) VALUES ('ada', 'f05', 7, 9)"
    older = sqlite3.connect(path / "workspace.db", isolation_level=None, check_same_thread=False)
    with closing(older), qkvsearch.Engine(path) as reader:
        older.execute("BEGIN IMMEDIATE")
        older.execute(row)
        later = Timer(0.3, older.execute, ["COMMIT"])
        later.start()
        upgrade(path)
        later.join()
        assert reader.info()["recorded"] == 6
        # What such a version does first, with every record and every build.
        with pytest.raises(sqlite3.OperationalError, match="no such table: builds"):
            older.execute("SELECT id, folder, created FROM builds WHERE is_current")


# --- damage ---


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_format_4_with_a_damaged_file_is_not_upgraded_and_names_it(unpacked):
    path = unpacked("format4-things")
    with closing(Workspace(path).open()) as build:
        files = [path for path, _ in build.files]
    assert len(files) > 10
    for file in files:
        content = file.read_bytes()
        flip(file, len(content) - 1)
        before = contents_of(path)
        with pytest.raises(DamagedError, match="its checksum is not") as caught:
            upgrade(path)
        assert caught.value.file == file
        assert contents_of(path) == before
        with qkvsearch.Engine(path) as engine, pytest.raises(DamagedError, match="1 file is"):
            engine.info(verify=True)
        file.write_bytes(content)
    upgrade(path)


@pytest.mark.parametrize("page", range(1, 12))
def test_a_damaged_database_of_format_4_gives_no_traceback_and_is_not_upgraded(qkv, unpacked, page):
    path = unpacked("format4-whole")
    database = path / "workspace.db"
    content = bytearray(database.read_bytes())
    content[4096 * page : 4096 * page + 4096] = bytes(i * 37 % 251 for i in range(4096))
    database.write_bytes(content)
    before = contents_of(path)
    with pytest.raises(WorkspaceError, match=r"workspace\.db"):
        upgrade(path)
    assert contents_of(path) == before
    for args in (["search", "tea"], ["recommend", "--user", "7"], ["info"], ["history", "7"]):
        answer = qkv("-w", path, *args)
        assert answer.code == 0 or r"workspace.db" in answer.stderr
        assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("name", ["format4-whole", "format4-things"])
def test_a_manifest_of_format_4_that_is_not_as_it_was_gives_no_traceback(unpacked, name):
    """It has no checksum: what is read of it is looked at."""
    path = unpacked(name)
    with closing(Workspace(path).open()) as build:
        manifest = build.base.folder / "manifest.json"
    written, random, refused = manifest.read_bytes(), Random(1), 0
    quoted = [at for at, byte in enumerate(written) if byte == ord('"')]
    for at in random.sample(quoted, 40):
        content = bytearray(written)
        content[at + 1] = ord("x")  # the first letter of a name, or of what comes after a text
        manifest.write_bytes(content)
        try:
            with qkvsearch.Engine(path) as engine:
                engine.search("tea in space", where="year > 1990")
                engine.recommend(likes="Last Orbit")
                engine.info()
        except qkvsearch.QkvError:
            refused += 1
    assert 10 < refused <= 40


# --- formats 1 to 3, and a build over any ---


COMMANDS = [
    ["search", "tea"],
    ["recommend", "--user", "ada"],
    ["recommend", "--all-users", "-o", "all.csv"],
    ["similar", "f03"],
    ["items"],
    ["users"],
    ["show", "f03"],
    ["history", "ada"],
    ["attend", "tea in space"],
    ["info"],
    ["info", "--verify"],
    ["record", "ada", "f05"],
    ["record", "--undo"],
    ["add", "films.csv"],
    ["remove", "f03"],
    ["evaluate", "recommend"],
    ["tune", "--trials", "1"],
    ["tune", "--reset"],
    ["builds"],
    ["rollback"],
    ["compact"],
    ["learn"],
    ["records"],
    ["forget", "ada", "--yes"],
    ["repair"],
]


@pytest.mark.parametrize("name", OLDER)
def test_older_formats_are_refused_by_every_command_and_stay_as_they_are(qkv, unpacked, make, name):
    path = unpacked(name)
    make.films(make.text_ids()).to_csv("films.csv", index=False)
    before = contents_of(path)
    for args in COMMANDS:
        answer = qkv("-w", path, *args)
        assert (answer.code, answer.stdout) == (1, ""), (args, answer)
        assert f"written in format {name[-1]}, this version reads 4 and 5" in answer.stderr, args
        assert "build the workspace again" in answer.stderr
        assert "Traceback" not in answer.stderr
        assert contents_of(path) == before, args


@pytest.fixture
def build_over(make):
    """A build of the films that the older workspaces are of, in the place of one."""

    def build(path: Path) -> qkvsearch.Engine:
        ids = make.text_ids()
        films, log = make.films(ids), make.log(ids)
        return qkvsearch.build(path, items=films, interactions=log, encoder="corpus")

    return build


@pytest.mark.parametrize("name", ["format1", "format3", "format4-first", "format4-text"])
def test_a_build_over_any_format_keeps_what_was_recorded_and_what_tune_found(
    unpacked, make, build_over, name
):
    path = unpacked(name)
    with build_over(path) as engine:
        info = engine.info(verify=True)
        assert info["recorded"] == (5 if name == "format4-text" else 2)
        assert info["tuned"] == (None if name == "format1" else make.TUNED)
        assert not any("not taken over" in line for line in info["rows"])
        commands = [build["command"] for build in engine.builds()]
        assert commands == ["build", "upgrade"][: 2 if name.startswith("format4") else 1]
        if name != "format4-text":
            assert {row["id"] for row in engine.history("ada") if row["recorded"]} == {"f11"}
    assert not list(path.glob("workspace.db*"))


@pytest.mark.parametrize("damaged", ["array", "settings", "manifest", "database"])
def test_a_build_over_a_damaged_format_4_says_what_it_cannot_take_over(
    unpacked, make, build_over, damaged
):
    path = unpacked("format4-first")
    with closing(Workspace(path).open()) as build:
        folder = build.base.folder
    file = {"array": folder / "lexical.weights.npy", "database": path / "workspace.db"}.get(
        damaged, folder / "manifest.json"
    )
    content = file.read_bytes()
    made = {"array": content[:-1], "settings": content.replace(b'"max_iter"', b'"max_item"')}
    file.write_bytes(made.get(damaged, b"damaged" * 999))
    with build_over(path) as engine:
        info = engine.info(verify=True)
    said = "\n".join(line for line in info["rows"] if "not taken over" in line)
    assert ("settings that tune found" in said) == (damaged != "array")
    assert ("what was recorded cannot be read" in said) == (damaged == "database")
    assert (path / "workspace.db.unread").exists() == (damaged == "database")
    assert not (path / "workspace.db").exists()
    assert info["recorded"] == (0 if damaged == "database" else 2)
    assert info["tuned"] == (make.TUNED if damaged == "array" else None)
