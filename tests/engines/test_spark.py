"""The contract of the engines: what Spark builds answers as what one machine builds."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError, QkvError

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark")]
CLOSE = 1e-3
KINDS = ["river", "mountain", "desert", "city"]


def write_items(folder, n=60):
    titles = [f"{KINDS[k % 4]} walk {k}" for k in range(n)]
    pd.DataFrame({"id": range(n), "title": titles}).to_csv(folder / "items.csv", index=False)
    return folder / "items.csv"


def drawn_log(n=6000, n_users=150, n_items=60, seed=0):
    """Users like what is as even as they are."""
    rng = np.random.default_rng(seed)
    users = (n_users * rng.random(n) ** 1.3).astype(int)
    items = (n_items / 2 * rng.random(n) ** 1.7).astype(int) * 2 + users % 2
    return pd.DataFrame({"user": users, "item": items})


def write_plain(folder):
    drawn_log().astype("int32").to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def write_rated(folder, n_users=150):
    """With dates that only all cells together tell, ratings and gaps."""
    log = drawn_log(seed=1, n_users=n_users)
    rng = np.random.default_rng(2)
    log["rating"] = rng.integers(1, 6, len(log)).astype(object)
    log.loc[::50, "rating"] = ""
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, len(log)), "D")
    log["date"] = days.strftime("%d/%m/%Y")
    log.to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def write_messy(folder):
    """Rows without a user or an item, unknown items, other spellings of ids, too many columns, a
    line that is not UTF-8, blank lines, amounts with currencies, refunds, seconds with gaps.
    """
    log, rng = drawn_log(seed=3), np.random.default_rng(4)
    hours = rng.exponential(3, len(log)).round(2)
    times = 1_600_000_000 + rng.integers(0, 10**7, len(log))
    rows = [f"{u};{i};{h};{t}" for u, i, h, t in zip(log.user, log.item, hours, times, strict=True)]
    rows[5] = f";{log.item[5]};1;1600000000"
    rows[9] = f"{log.user[9]};;1;1600000000"
    rows[20] = f"{log.user[20]};4711;1;1600000000"
    rows[30] = f" {log.user[30]} ;{log.item[30]}.0;$2.50;"
    rows[40] = f"{log.user[41]};{log.item[41]};-1;{times[41] + 5}"
    rows[50] = "1;2;3;4;5;6"
    rows[60] = f"{log.user[60]};{log.item[60]};much;1600000000"
    rows[70] = ""
    lines = ["user;item;hours;time", *rows]
    lines[80] += ";Öl"
    (folder / "log.csv").write_bytes("\n".join(lines).encode("cp1252"))
    return folder / "log.csv"


def write_named(folder):
    """JSON Lines, users by name, some of them in another case, and dates in ISO 8601."""
    log = drawn_log(seed=5)
    log["when"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(log)), "min")).astype(
        str
    )
    names = [f"User{u}" if k % 7 else f"user{u}" for k, u in enumerate(log.user)]
    rows = zip(names, log.item, log.when, strict=True)
    lines = [json.dumps({"user": u, "item": int(i), "when": w}) for u, i, w in rows]
    (folder / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "log.jsonl"


LOGS = {"plain": write_plain, "rated": write_rated, "messy": write_messy, "named": write_named}


def options(name):
    columns = qkv.Columns(fold_ids=True, time="when") if name == "named" else None
    return {"columns": columns, "encoder": "corpus"}


@pytest.fixture(scope="module", params=list(LOGS))
def both(request, tmp_path_factory, engine):
    """One log, built here and on Spark."""
    folder = tmp_path_factory.mktemp(request.param)
    given = {"items": write_items(folder), "interactions": LOGS[request.param](folder)}
    given |= options(request.param)
    return (
        qkv.build(folder / "here", **given),
        qkv.build(folder / "spark", **given, engine=engine),
    )


def assert_alike(here, there, n_users=40):
    ids = [row["id"] for row in here.users.list(k=n_users)]
    assert ids == [row["id"] for row in there.users.list(k=n_users)]
    for user in ids:
        one, other = here.recommend(user=user, k=10), there.recommend(user=user, k=10)
        scores = {hit.id: hit.score for hit in other}
        assert {hit.id for hit in one} == scores.keys()
        assert all(abs(hit.score - scores[hit.id]) < CLOSE for hit in one)


@pytest.mark.slow
def test_recommendations_are_the_same(both):
    assert_alike(*both)


def test_the_same_becomes_of_every_row(both):
    here, there = (engine.snapshot.facts for engine in both)
    assert there["rows"] == here["rows"]
    assert there["interaction_columns"] == here["interaction_columns"]
    for name in ("n_users", "n_interactions", "rating_scale", "times_comparable"):
        assert there.get(name) == here.get(name)


def test_histories_are_the_same(both):
    here, there = both
    for user in [row["id"] for row in here.users.list(k=20)]:
        assert list(there.history(user)) == list(here.history(user))
    stored = [set(engine.snapshot.base.files) for engine in both]
    assert stored[0] == stored[1]
    there.info(verify=True)


def test_other_answers_are_the_same(both):
    here, _ = both
    user = here.users.list(k=1)[0]["id"]
    for answer in (
        lambda engine: engine.search("river walk", k=5),
        lambda engine: engine.similar(3, k=5),
        lambda engine: engine.similar_users(user, k=5),
        lambda engine: engine.recommend(likes=[2, 4], k=5),
    ):
        one, other = (answer(engine) for engine in both)
        assert [hit.id for hit in one] == [hit.id for hit in other]
        np.testing.assert_allclose([h.score for h in one], [h.score for h in other], atol=CLOSE)
    one, other = (engine.recommend(user=user, k=1) for engine in both)
    assert other[0].predicted_rating == pytest.approx(one[0].predicted_rating, abs=CLOSE)


# Of 60 items, embeddings of 64 numbers of four bytes are 15,360 bytes.
@pytest.mark.parametrize(
    ("n_bytes", "n_users"),
    [("0", 150), ("20000", 150), ("10000", 30)],
    ids=["all", "users", "items"],
)
def test_rows_that_are_asked_for_give_the_same(tmp_path, engine, monkeypatch, n_bytes, n_users):
    given = {"items": write_items(tmp_path), "interactions": write_rated(tmp_path, n_users)}
    here = qkv.build(tmp_path / "here", **given, **options("rated"))
    monkeypatch.setenv("QKVSEARCH_SPARK_BROADCAST", n_bytes)
    there = qkv.build(tmp_path / "spark", **given, **options("rated"), engine=engine)
    assert_alike(here, there)


def test_all_users_go_to_a_folder(both, engine, tmp_path):
    _, there = both
    there.recommend_all(tmp_path / "here.parquet", k=5)
    done = there.recommend_all(tmp_path / "spark.parquet", k=5, engine=engine)
    assert done.users == there.snapshot.facts["n_users"]
    one = pd.read_parquet(tmp_path / "here.parquet")
    other = pd.read_parquet(tmp_path / "spark.parquet").drop(columns="part")
    other = other.sort_values(["user", "rank"], kind="stable").reset_index(drop=True)
    one = one.sort_values(["user", "rank"], kind="stable").reset_index(drop=True)
    pd.testing.assert_frame_equal(one, other, atol=1e-5)


def test_all_users_do_not_mix_with_what_is_there(both, engine, tmp_path):
    _, there = both
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    with pytest.raises(QkvError, match="not ours"):
        there.recommend_all(tmp_path / "mine", k=5, format="parquet", engine=engine)


def test_measures_are_the_same(tmp_path, engine):
    given = {"items": write_items(tmp_path), "interactions": write_plain(tmp_path)}
    here = qkv.build(tmp_path / "here", **given, encoder="corpus")
    one = here.evaluate_recommend(k=5)
    other = here.evaluate_recommend(k=5, engine=engine)
    assert other.metrics == pytest.approx(one.metrics, abs=CLOSE)
    assert other.baselines == one.baselines
    one, other = here.tune(k=5, trials=2), None
    again = qkv.build(tmp_path / "again", **given, encoder="corpus")
    other = again.tune(k=5, trials=2, engine=engine)
    assert other.settings == one.settings
    assert other.test == pytest.approx(one.test, abs=CLOSE)
    assert_alike(here, again, n_users=5)


def test_nothing_is_left_of_what_it_takes_to_go_on(both):
    _, there = both
    assert not list(there.workspace.path.glob(".*"))


@pytest.mark.parametrize("most_blocks", [64, 2])
def test_texts_are_encoded_the_same(both, engine, monkeypatch, most_blocks):
    from qkvsearch.answers.exports.elsewhere import encode_elsewhere
    from qkvsearch.engines.spark import texts as module

    monkeypatch.setattr(module, "TEXTS_A_BLOCK", 150)
    monkeypatch.setattr(module, "MOST_BLOCKS", most_blocks)
    _, there = both
    rng, done = np.random.default_rng(0), []
    texts = [" ".join(rng.permutation(KINDS)[: 1 + k % 3]) for k in range(1000)]
    found = encode_elsewhere(
        engine, texts, there.workspace.path, "lsa", lambda *told: done.append(told)
    )
    here = there.models.encoder("lsa").encode_many(texts)
    assert len(np.unique(here.round(4), axis=0)) > 6
    np.testing.assert_allclose(found, here, atol=1e-6)
    assert done[-1] == ("encoding", 1000, 1000)
    assert len(done) == (4 if most_blocks == 2 else 1)


WRONG = {
    "no user": ("item,price\n1,2\n", DataError, "which column is the user"),
    "no rows": ("user,item\n", DataError, "no rows in it"),
    "no item known": ("user,item\na,x\nb,y\n", DataError, "not in the catalog.*look like 'x'"),
    "a line break in a cell": ('user,item\na,1\n"b\nc",2\n', DataError, "line break|never closed"),
    "titles": ("user,item,title\na,1,One\n", None, ""),
}


@pytest.mark.parametrize("name", list(WRONG))
@pytest.mark.slow
def test_what_does_not_fit_is_said_in_one_line(tmp_path, engine, name):
    text, error, said = WRONG[name]
    (tmp_path / "log.csv").write_text(text)
    items = write_items(tmp_path) if error else None
    with pytest.raises(error or QkvError, match=said or "items. as a file of their own"):
        qkv.build(tmp_path / "ws", items=items, interactions=tmp_path / "log.csv", engine=engine)
    assert not (tmp_path / "ws" / "root.json").exists()


# --- what goes wrong on the way: each has a cluster of its own ---


def command(folder, engine, *more):
    return [
        sys.executable, "-m", "qkvsearch", "-w", str(folder / "spark"), "build",
        "--items", str(folder / "items.csv"), "--interactions", str(folder / "log.parquet"),
        "--encoder", "corpus", "--engine", engine, *more,
    ]  # fmt: skip


@pytest.fixture
def own_cluster(spark_cluster, tmp_path):
    """Which may be killed."""
    from benchmarks.support.spark_cluster import cluster

    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as found:
        yield found


def kept(folder):
    """The iteration that a run in this folder would go on from."""
    found = list(folder.glob("spark/.engine/*/learned-*/state.json"))
    return json.loads(found[0].read_text())["iteration"] if found else 0


def wait_until(condition, process, seconds=400):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)


@pytest.mark.parametrize("n_bytes", ["", "0"], ids=["few users", "many users"])
def test_a_driver_that_was_killed_goes_on(tmp_path, own_cluster, n_bytes):
    write_items(tmp_path), write_plain(tmp_path)
    own_cluster.environment["QKVSEARCH_SPARK_BROADCAST"] = n_bytes
    first = subprocess.Popen(
        command(tmp_path, own_cluster.master), env=own_cluster.environment,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: kept(tmp_path) > 0, first)
    first.kill()
    first.wait()
    assert not (tmp_path / "spark" / "root.json").exists()
    again = subprocess.run(
        command(tmp_path, own_cluster.master), env=own_cluster.environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "this one goes on with" in again.stderr
    assert_like_here(tmp_path)


@pytest.mark.parametrize("n_bytes", ["", "0"], ids=["few users", "many users"])
def test_a_worker_that_was_killed_is_made_up_for(tmp_path, own_cluster, n_bytes):
    write_items(tmp_path), write_plain(tmp_path)
    own_cluster.environment["QKVSEARCH_SPARK_BROADCAST"] = n_bytes
    running = subprocess.Popen(
        command(tmp_path, own_cluster.master), env=own_cluster.environment,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: kept(tmp_path) > 0, running)
    own_cluster.kill(own_cluster.workers[0])
    _, said = running.communicate(timeout=600)
    assert running.returncode == 0, said
    assert_like_here(tmp_path)


def assert_like_here(folder):
    given = {"items": folder / "items.csv", "interactions": folder / "log.parquet"}
    here = qkv.build(folder / "here", **given, encoder="corpus")
    assert_alike(here, qkv.open(folder / "spark"))


def test_executors_without_numba_are_named(tmp_path, own_cluster):
    write_items(tmp_path), write_plain(tmp_path)
    (tmp_path / "without" / "numba").mkdir(parents=True)
    (tmp_path / "without" / "numba" / "__init__.py").write_text("raise ImportError('no numba')")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={tmp_path}/without:$PYTHONPATH exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    environment = {**own_cluster.environment, "PYSPARK_PYTHON": str(python)}
    found = subprocess.run(
        command(tmp_path, own_cluster.master), env=environment, capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "is without numba: run pip install 'qkvsearch[spark]'" in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "spark").exists()


def test_spark_without_an_address_uses_this_machine(tmp_path, spark_cluster):
    write_items(tmp_path), write_plain(tmp_path)
    subprocess.run(
        command(tmp_path, "spark"), env=spark_cluster.environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert_like_here(tmp_path)
