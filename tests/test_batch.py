"""Recommendations for all users: the same as one by one, resumable, in every format."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.index import interaction_log
from qkvsearch.recommend import batch
from qkvsearch.recommend.export_file import ExportFile

OPTIONS = [
    {},
    {"k": 3, "where": "year >= 2000"},
    {"damping": 0.8},
    {"damping": 0.8, "heads": "neighbours"},
    {"heads": "collaborative"},
    {"recent": 4, "seen": True},
    {"k": 1000, "only": ["m001", "m002", "m003"]},
]


@pytest.fixture
def small_blocks(monkeypatch):
    """Of 64 users, so that the sample has several."""
    monkeypatch.setattr(interaction_log, "BLOCK", 64)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_user(rows):
    found = {}
    for row in rows:
        found.setdefault(str(row["user"]), []).append(row)
    return found


def interrupt(engine, path, **options):
    """Begin a file for all users, with Ctrl-C after three parts."""
    add = ExportFile.add

    def interrupted(self, number, table):
        if number == 3:
            raise KeyboardInterrupt
        add(self, number, table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExportFile, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.recommend_all(path, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_everyone_gets_what_they_get_alone(films, tmp_path, small_blocks, options):
    films.record("newcomer", "Alien", 5)
    films.record("u003", "Heat", 5)
    films.record("grump", "Alien", 1)
    people, done, _ = films.recommend_all(tmp_path / "all.csv", **options)
    assert (people, done) == (402, 0)
    found = by_user(rows_of(tmp_path / "all.csv"))
    assert "grump" not in found
    for user in ["u001", "u002", "u003", "u100", "u400", "newcomer"]:
        alone = films.recommend(user=user, **options)
        assert [row["id"] for row in found.get(user, [])] == [hit.id for hit in alone]
        assert [row["title"] for row in found.get(user, [])] == [hit.title for hit in alone]
        assert [int(row["rank"]) for row in found.get(user, [])] == [hit.rank for hit in alone]
        scores = [float(row["score"]) for row in found.get(user, [])]
        assert scores == pytest.approx([hit.score for hit in alone], abs=1e-4)


def test_all_formats_hold_the_same_with_the_owners_ids(shop, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("all.csv", "all.jsonl", "all.parquet"):
        shop.recommend_all(tmp_path / name, k=2)
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert {type(row[name]) for row in rows for name in ("user", "id")} == {int}
    assert list(rows[0]) == ["user", "rank", "id", "title", "score"]
    table = parquet.read_table(tmp_path / "all.parquet")
    assert table.to_pylist() == [row | {"score": pytest.approx(row["score"])} for row in rows]
    assert [row["title"] for row in rows_of(tmp_path / "all.csv")] == [r["title"] for r in rows]
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_file(
    films, tmp_path, small_blocks, form
):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    films.recommend_all(tmp_path / f"whole.{form}")
    broken = tmp_path / f"broken.{form}"
    interrupt(films, broken)
    assert not broken.exists()
    solved = []
    with pytest.MonkeyPatch.context() as patch:
        best = batch.BatchRecommendations.best
        patch.setattr(
            batch.BatchRecommendations,
            "best",
            lambda self, *span: solved.append(span) or best(self, *span),
        )
        assert films.recommend_all(broken)[:2] == (400, 192)
    assert solved[0] == (192, 256)
    assert len(solved) == 4
    assert broken.read_bytes() == (tmp_path / f"whole.{form}").read_bytes()


@pytest.mark.parametrize("change", [{"k": 4}, {"where": "year > 1990"}, {"seen": True}, "record"])
def test_parts_of_other_options_or_before_a_record_are_not_used(
    films, tmp_path, small_blocks, change
):
    interrupt(films, tmp_path / "all.csv", k=5)
    options = {"k": 5} | (change if isinstance(change, dict) else {})
    if change == "record":
        films.record("u001", "Alien", 5)
    assert films.recommend_all(tmp_path / "all.csv", **options)[1] == 0
    films.recommend_all(tmp_path / "fresh.csv", **options)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "fresh.csv").read_bytes()


def test_two_runs_with_other_options_on_one_file_do_not_mix(films, tmp_path, small_blocks):
    films.recommend_all(tmp_path / "fresh.csv", k=5)
    films.recommend_all(tmp_path / "other.csv", k=3)
    add, written = ExportFile.add, []

    def meanwhile(self, number, table):
        if number == 3 and not written:
            written.append(True)
            films.recommend_all(tmp_path / "all.csv", k=3)
            written.append((tmp_path / "all.csv").read_bytes())
        add(self, number, table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExportFile, "add", meanwhile)
        films.recommend_all(tmp_path / "all.csv", k=5)
    assert written[1] == (tmp_path / "other.csv").read_bytes()
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "fresh.csv").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.parametrize("hours", [1, 25])
def test_parts_of_an_interrupted_run_outlast_another_run_for_a_day(
    films, tmp_path, small_blocks, hours
):
    interrupt(films, tmp_path / "all.csv", k=5)
    (parts,) = (tmp_path / "all.csv.parts").iterdir()
    long_ago = time.time() - 3600 * hours
    os.utime(parts, (long_ago, long_ago))
    films.recommend_all(tmp_path / "all.csv", k=3)
    assert (tmp_path / "all.csv.parts").exists() == (hours == 1)
    assert films.recommend_all(tmp_path / "all.csv", k=5)[1] == (192 if hours == 1 else 0)
    assert not list(tmp_path.glob("*.parts"))


def test_a_run_that_another_one_overtook_says_so(films, tmp_path, small_blocks):
    add = ExportFile.add

    def overtaken(self, number, table):
        if number == 2:
            shutil.rmtree(self.folder)  # as the other one does when it has finished
        add(self, number, table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExportFile, "add", overtaken)
        with pytest.raises(QkvError, match="another run with the same options has written it"):
            films.recommend_all(tmp_path / "all.csv")


def test_every_file_is_on_disk_before_it_has_its_name(films, tmp_path, small_blocks, monkeypatch):
    synced, named = set(), []
    replace = Path.replace

    def sync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)

    def name(self, target):
        named.append(target.name)
        assert self.stat().st_ino in synced
        synced.clear()
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", name)
    films.recommend_all(tmp_path / "all.csv")
    assert named == [f"{n:06d}" for n in range(7)] + ["all.csv"]


# Dies by a real SIGKILL at a moment that the parent names.
KILLED = """
import os, pathlib, signal, sys
import qkvsearch as qkv
from qkvsearch.index import interaction_log

interaction_log.BLOCK = 64
path, file, fatal = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
steps = 0

def stepping(owner, name):
    original = getattr(owner, name)
    def step(*args, **kwargs):
        global steps
        steps += 1
        if steps == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)
    setattr(owner, name, step)

stepping(os, "fsync")
stepping(pathlib.Path, "replace")
qkv.open(path).recommend_all(file)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(("fatal", "done"), [(1, 0), (3, 64), (14, 384), (16, 400)])
def test_a_killed_run_goes_on_and_ends_with_the_same_file(
    films, tmp_path, small_blocks, fatal, done
):
    file = tmp_path / "all.jsonl"
    command = [sys.executable, "-c", KILLED, films.workspace.path, file, fatal]
    killed = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not file.exists()
    assert films.recommend_all(file)[:2] == (400, done)
    films.recommend_all(tmp_path / "whole.jsonl")
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_blocks_are_smaller_for_a_larger_k_and_those_of_others_are_not_used(
    films, tmp_path, monkeypatch
):
    everyone = films.current_build.recommender.histories
    assert everyone.blocks(10) == [(0, 400)]
    assert (
        max((stop - start) * 1000 for start, stop in everyone.blocks(1000)) <= interaction_log.ROWS
    )
    assert everyone.blocks(10**9)[-1] == (399, 400)
    monkeypatch.setattr(interaction_log, "ROWS", 1000)
    interrupt(films, tmp_path / "all.csv")
    monkeypatch.setattr(interaction_log, "ROWS", 2000)
    assert films.recommend_all(tmp_path / "all.csv")[:2] == (400, 0)


def test_memory_does_not_grow_with_the_users_nor_with_k(tmp_path, shop_items, monkeypatch):
    monkeypatch.setattr(interaction_log, "BLOCK", 32)
    monkeypatch.setattr(interaction_log, "ROWS", 32 * 12)
    items = pd.DataFrame({"id": range(120), "title": [f"part {i}" for i in range(120)]})

    def peak(n_users, k):
        rng = np.random.default_rng(0)
        log = pd.DataFrame({"user": np.repeat(range(n_users), 5)})
        log["item"] = rng.integers(120, size=len(log))
        path = tmp_path / str(n_users)
        if not path.exists():
            qkv.build(path, items=items, interactions=log, encoder="corpus").close()
        with qkv.open(path) as engine:
            engine.recommend_all(tmp_path / "all.csv", k=1)  # imports, caches
            tracemalloc.start()
            try:
                engine.recommend_all(tmp_path / "all.csv", k=k)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    once = peak(100, 12)
    assert peak(400, 12) < 1.3 * once
    assert peak(100, 120) < 1.3 * once


def test_what_is_the_same_for_all_blocks_is_made_once(films, tmp_path, small_blocks, monkeypatch):
    made = []
    popularity = batch.log_popularity
    monkeypatch.setattr(
        batch, "log_popularity", lambda counts: made.append(1) or popularity(counts)
    )
    films.recommend_all(tmp_path / "all.csv", damping=0.5)
    assert made == [1]


def test_recent_without_times_is_refused_before_any_work(shop, tmp_path):
    with pytest.raises(QkvError, match="no times, so none is recent"):
        shop.recommend_all(tmp_path / "all.csv", recent=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["all.csv.parts", "all.csv.parts/thesis.txt"])
def test_what_is_not_ours_in_the_place_of_the_parts_is_left_alone(shop, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(QkvError, match=r"all\.csv\.parts: in the way, and not ours"):
        shop.recommend_all(tmp_path / "all.csv")
    assert (tmp_path / name).read_text() == "mine"


def test_progress_counts_users(shop, tmp_path):
    seen = []
    shop.recommend_all(tmp_path / "all.csv", progress=lambda *report: seen.append(report))
    assert seen == [("recommending", 7, 7)]


@pytest.mark.parametrize("name", ["all", "all.json", "all.xlsx"])
def test_another_format_is_refused_before_any_work(shop, tmp_path, name):
    with pytest.raises(QkvError, match=r"\.parquet, \.csv or \.jsonl"):
        shop.recommend_all(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_is_refused_before_any_work(shop, tmp_path):
    (tmp_path / "taken.csv").mkdir()
    for name in ("taken.csv", "nowhere/all.csv"):
        with pytest.raises(QkvError, match=f"{name}: is a folder, or its folder does not exist"):
            shop.recommend_all(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]


def test_nothing_allowed_gives_a_file_without_rows(shop, tmp_path):
    shop.recommend_all(tmp_path / "none.csv", where="made < 0")
    shop.recommend_all(tmp_path / "k.csv", k=0)
    assert (tmp_path / "none.csv").read_text() == "user,rank,id,title,score\n"
    assert (tmp_path / "k.csv").read_text() == "user,rank,id,title,score\n"


# --- the command ---


def test_the_command_writes_what_the_engine_does(qkv, movies_path, movies, tmp_path):
    answer = qkv("-w", movies_path, "recommend", "--all-users", "-k", 2, "-o", "all.csv")
    assert (answer.code, answer.stdout) == (0, "")
    assert "all.csv: recommendations for 400 users." in answer.stderr
    movies.recommend_all(tmp_path / "engine.csv", k=2)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "engine.csv").read_bytes()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--all-users"], "name a file for all users"),
        (["--all-users", "-o", "x.csv", "--user", "u001"], "--user is for one user"),
        (["--all-users", "-o", "x.csv", "--like", "Heat"], "--like is for one user"),
        (["--all-users", "-o", "x.csv", "--explain"], "--explain is for one user"),
        (["--all-users", "-o", "x.csv", "--diversity", "0.3"], "--diversity is for one user"),
        (["--all-users", "-o", "x.csv", "--temperature", "1"], "--temperature is for one user"),
        ([], "name a user"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_wrong_usage(qkv, movies_path, args, said):
    answer = qkv("-w", movies_path, "recommend", *args)
    assert (answer.code, answer.stdout) == (2, "")
    assert said in answer.stderr


def test_an_allow_list_comes_from_a_file_or_stdin(qkv, movies_path, tmp_path):
    (tmp_path / "stock.txt").write_text("m056\n\n m078 \nnowhere\n", encoding="utf-8")
    command = ["-w", movies_path, "recommend", "--like", "m200", "--format", "json", "--only"]
    from_file = qkv(*command, "stock.txt").json()
    from_stdin = qkv(*command, "-", stdin="m056\nm078\n").json()
    assert {row["id"] for row in from_file} == {"m056", "m078"}
    assert from_stdin == from_file
    missing = qkv(*command, "-", stdin="nowhere\n")
    assert (missing.code, missing.stdout) == (1, "")
    assert "none of its 1 ids, such as 'nowhere'" in missing.stderr


def test_an_allow_list_may_begin_with_a_mark_and_unknown_ids_are_counted(
    qkv, movies_path, tmp_path
):
    (tmp_path / "stock.txt").write_text("m056\nm078\nnowhere\n", encoding="utf-8-sig")
    command = ["-w", movies_path, "recommend", "--only", "stock.txt"]
    one = qkv(*command, "--like", "m200", "--format", "json")
    assert {row["id"] for row in one.json()} == {"m056", "m078"}
    everyone = qkv(*command, "--all-users", "-o", "all.csv")
    for answer in (one, everyone):
        assert "--only: 1 of 3 ids, such as 'nowhere', are not in the catalog" in answer.stderr
    (tmp_path / "stock.txt").write_text("m056\n")
    assert "--only" not in qkv(*command, "--like", "m200").stderr


def test_a_table_says_which_items_are_new_and_what_was_met(qkv, shop_path):
    answer = qkv("-w", shop_path, "recommend", "--user", "101", "-k", 99, "--explain")
    lines = [line.strip() for line in answer.stdout.splitlines()]
    assert lines.count("new: no interactions yet") == 1
    assert "apple hammer" in lines[lines.index("new: no interactions yet") - 1]
    assert any(line.endswith("together with red apple") for line in lines)
    answer = qkv("-w", shop_path, "similar", "--user", "101", "-k", 1, "--explain", "--weights")
    both = next(line for line in answer.stdout.splitlines() if "both know, such as" in line)
    assert "red apple" in both  # another adds as much, but for the last bits of a processor
    # not 101 themself, nor 300, who likes nothing
    assert "over 5 users" in answer.stdout


def test_similar_lists_users_and_refuses_both_or_neither(qkv, movies_path):
    rows = qkv(
        "-w", movies_path, "similar", "--user", "u001", "-k", 2, "--explain", "--format", "json"
    ).json()
    assert [row["rank"] for row in rows] == [1, 2]
    assert {"id", "score", "weight", "shared", "because"} <= set(rows[0])
    for args in ([], ["Heat", "--user", "u001"], ["--user", "u001", "--where", "year > 1"]):
        assert qkv("-w", movies_path, "similar", *args).code == 2
