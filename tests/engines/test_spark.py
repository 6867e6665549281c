"""The contract of the engines: what Spark builds answers as what one machine builds."""

import io
import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError, QkvError
from qkvsearch.heads.stored_log import LOG_ROWS
from qkvsearch.learn import spark_build

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
    """Ratings and days as text, and gaps in both."""
    log = drawn_log(seed=1, n_users=n_users)
    rng = np.random.default_rng(2)
    log["rating"] = rng.integers(1, 6, len(log)).astype(object)
    log.loc[::50, "rating"] = ""
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, len(log)), "D")
    log["date"] = days.strftime("%Y-%m-%d")
    log.loc[::70, "date"] = ""
    log.astype(str).to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def write_weighted(folder):
    """Text with hours, refunds, milliseconds and gaps, blanks around ids, an unused column, and
    rows without a user, without an item and with an unknown one.
    """
    log, rng = drawn_log(seed=3).astype(str), np.random.default_rng(4)
    log["hours"] = rng.exponential(3, len(log)).round(2).astype(str)
    log["time"] = (1_600_000_000_000 + rng.integers(0, 10**10, len(log))).astype(str)
    log["note"] = [["a", "b"]] * len(log)
    log.loc[5, "user"] = log.loc[9, "item"] = log.loc[30, "hours"] = log.loc[30, "time"] = ""
    log.loc[20, "item"] = "4711"
    log.loc[30, "user"] = f" {log.user[30]}\u00a0"
    log.loc[40] = log.loc[41]
    log.loc[40, ["hours", "time"]] = ["-1", str(int(log.time[41]) + 5000)]
    log.to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def write_named(folder):
    """Users by name, a rating in some rows, and dates with a time of day."""
    log = drawn_log(seed=5)
    log["user"] = "User" + log["user"].astype(str)
    log.loc[12, "user"] = "User\n12"
    log["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(log)), "min")
    log["when"] = log["when"].astype(str)
    log["rating"] = np.where(np.arange(len(log)) % 3 > 0, log["item"] % 5 + 0.5, np.nan)
    log.to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def write_parts(folder):
    """A folder of Parquet files of several sizes, without times: of repeated pairs with other
    ratings the last in the order of the files counts. Ids as pandas writes them beside a gap.
    """
    log = drawn_log(seed=6)
    log["rating"] = np.random.default_rng(7).integers(1, 6, len(log)).astype("float32") / 10
    log["user"] = log["user"].astype(float)
    log.loc[11, "user"] = np.nan
    (folder / "log").mkdir()
    for part, (start, stop) in enumerate([(0, 4000), (4000, 4100), (4100, 6000)]):
        log[start:stop].to_parquet(folder / "log" / f"part-{part}.parquet")
    log.to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def write_events(folder):
    """Events with quantities, some of them missing, and likes and dislikes."""
    log, rng = drawn_log(seed=8), np.random.default_rng(9)
    events = ["view", "addToCart", "Purchase", "purchase", "refund", "impression", ""]
    log["event"] = rng.choice(events, len(log))
    log["quantity"] = rng.choice(["1", "2", "-1", ""], len(log))
    log["rating"] = rng.choice(["Like", "dislike", "yes", ""], len(log))
    log["time"] = 1_600_000_000 + np.arange(len(log))
    log.to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


LOGS = {
    "plain": write_plain, "rated": write_rated, "weighted": write_weighted, "named": write_named,
    "parts": write_parts, "events": write_events,
}  # fmt: skip


def options(name):
    columns = qkv.Columns(time="when") if name == "named" else None
    return {"columns": columns, "encoder": "corpus"}


@pytest.fixture(scope="module", params=list(LOGS))
def both(request, tmp_path_factory, engine):
    """One log, built here and on Spark."""
    folder = tmp_path_factory.mktemp(request.param)
    given = {"items": write_items(folder), "interactions": LOGS[request.param](folder)}
    given |= options(request.param)
    here = qkv.build(folder / "here", **given)
    if (folder / "log").is_dir():  # which one machine does not read
        given["interactions"] = folder / "log"
    return here, qkv.build(folder / "spark", **given, engine=engine)


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


def report(facts):
    """Without the number of the first row and the name of the file."""
    return [re.sub(r", first row [\d,]*\d|log(\.\w+)?:", "", line) for line in facts["rows"]]


def test_the_same_becomes_of_every_row(both):
    here, there = (engine.snapshot.facts for engine in both)
    assert report(there) == report(here)
    columns = [
        [(column["name"], column["role"], column["type"], column["empty"]) for column in columns]
        for columns in (here["interaction_columns"], there["interaction_columns"])
    ]
    assert columns[0] == columns[1]
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
        lambda engine: engine.recommend(likes=[2, 4], k=5),
    ):
        one, other = (answer(engine) for engine in both)
        assert [hit.id for hit in one] == [hit.id for hit in other]
        np.testing.assert_allclose([h.score for h in one], [h.score for h in other], atol=CLOSE)
    one, other = (engine.recommend(user=user, k=1) for engine in both)
    assert other[0].predicted_rating == pytest.approx(one[0].predicted_rating, abs=CLOSE)


def test_users_that_are_sent_give_the_same(tmp_path, engine, monkeypatch):
    given = {"items": write_items(tmp_path), "interactions": write_rated(tmp_path)}
    here = qkv.build(tmp_path / "here", **given, **options("rated"))
    monkeypatch.setenv("QKVSEARCH_SPARK_BROADCAST", "0")
    there = qkv.build(tmp_path / "spark", **given, **options("rated"), engine=engine)
    assert_alike(here, there)


def test_a_long_log_has_neighbours_and_ratings_of_a_sample(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(spark_build, "MAX_PAIRS", 1000)
    given = {"items": write_items(tmp_path), "interactions": write_rated(tmp_path)}
    there = qkv.build(tmp_path / "spark", **given, **options("rated"), engine=engine)
    (note,) = (row for row in there.snapshot.facts[LOG_ROWS] if "drawn at random" in row)
    n, total = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", note))
    assert 500 < n < 1500 < total == there.snapshot.facts["n_interactions"]
    hit = there.recommend(user=there.users.list(k=1)[0]["id"], heads="neighbours")[0]
    assert hit.score > 0
    assert 1 <= hit.predicted_rating <= 5


def test_a_column_of_yes_and_no_is_likes_and_dislikes(tmp_path, engine):
    log = drawn_log(seed=8).drop_duplicates()
    log["rating"] = np.random.default_rng(9).random(len(log)) < 0.8
    items = write_items(tmp_path)
    log.astype({"rating": int}).to_csv(tmp_path / "numbers.csv", index=False)
    log.to_parquet(tmp_path / "yes_no.parquet")
    log.replace({True: "yes", False: "No"}).to_parquet(tmp_path / "words.parquet")
    expected = qkv.build(tmp_path / "here", items=items, interactions=tmp_path / "numbers.csv")
    for file in ("yes_no.parquet", "words.parquet"):
        workspace = tmp_path / f"ws-{file}"
        built = qkv.build(workspace, items=items, interactions=tmp_path / file, engine=engine)
        assert built.snapshot.facts["rating_scale"] == [0, 1]
        assert_alike(expected, built, n_users=10)


def test_moments_of_every_unit_are_read(tmp_path, engine):
    log = drawn_log(n=300)
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(300), "min")
    log["time"] = moments.astype("datetime64[ns]")
    log.to_parquet(tmp_path / "ns.parquet")
    log.assign(time=moments.astype("datetime64[us]")).to_parquet(tmp_path / "us.parquet")
    log.assign(time=moments.tz_localize("UTC").tz_convert("Asia/Tokyo")).to_parquet(
        tmp_path / "zone.parquet"
    )
    items, histories = write_items(tmp_path), []
    for file in ("ns.parquet", "us.parquet", "zone.parquet"):
        workspace = tmp_path / f"ws-{file}"
        built = qkv.build(workspace, items=items, interactions=tmp_path / file, engine=engine)
        histories.append(list(built.history(3)))
    assert histories[0]
    assert all(history == histories[0] for history in histories[1:])


@pytest.mark.parametrize("subfolder", ["later", "day=2"])
def test_a_folder_is_one_log(tmp_path, engine, subfolder):
    log = drawn_log(n=2000, seed=10)
    log.to_parquet(tmp_path / "log.parquet")
    (tmp_path / "log" / subfolder).mkdir(parents=True)
    (tmp_path / "log" / "_SUCCESS").touch()
    # Beside partitions, Spark reads no other files.
    first = "day=1" if "=" in subfolder else "."
    (tmp_path / "log" / first).mkdir(exist_ok=True)
    log[:900].to_parquet(tmp_path / "log" / first / "part-0.parquet")
    log[900:].to_parquet(tmp_path / "log" / subfolder / "part-1.parquet")
    items = write_items(tmp_path)
    here = qkv.build(tmp_path / "here", items=items, interactions=tmp_path / "log.parquet")
    there = qkv.build(tmp_path / "ws", items=items, interactions=tmp_path / "log", engine=engine)
    assert there.snapshot.facts["n_interactions"] == here.snapshot.facts["n_interactions"]
    assert "2,000 rows read" in str(there.snapshot.facts["rows"])
    assert_alike(here, there, n_users=10)


def test_a_folder_with_files_beside_its_partitions_is_refused(tmp_path, engine):
    for folder in ("log", "log/day=1"):
        (tmp_path / folder).mkdir()
        drawn_log(n=20).to_parquet(tmp_path / folder / "part.parquet")
    given = {"items": write_items(tmp_path), "interactions": tmp_path / "log"}
    with pytest.raises(DataError, match="some files are in subfolders such as day=1"):
        qkv.build(tmp_path / "ws", **given, engine=engine)


def table(text, **columns):
    """A log of text cells, and the columns that are named."""
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False), columns


# Of each log its files, and the columns that are named; what is said.
REFUSED = {
    "no user": (*table("item,price\n1,2\n"), "which column is the user.*`user_column`"),
    "no rows": (*table("user,item\n"), "no rows in it"),
    "no known item": (*table("user,item\na,x\nb,y\n"), "not in the catalog.*look like 'x'"),
    "an amount": (
        *table("user,item,rating\n1,2,$2.50\n1,3,4\n1,4,\n"),
        r"column 'rating' \(rating\): 1 of 2 cells cannot be cast to a number or yes or no, such "
        r"as '\$2.50': clean the column, name another one with `rating_column`, or leave out",
    ),
    "no number": (*table("user,item,weight\n1,2,NaN\n1,3,1e13\n"), "2 of 2 cells .*'1e13'"),
    "days": (
        *table("user,item,date\n1,2,13/02/2023\n"),
        "cast to .* or a date in ISO 8601, such",
    ),
    "hours": (*table("user,item,time\n1,2,10:00\n"), "ISO 8601, such as '10:00'"),
    "days as numbers": (*table("user,item,date\n1,2,20240301\n"), "may be dates.*'20240301'"),
    "days of a sheet": (*table("user,item,date\n1,2,45352.5\n"), "may be dates.*'45352.5'"),
    "numbers with a point": (*table("user,item\n7.0,2\n7,3\n"), "1 of 2 cells are whole .*'7.0'"),
    "half users": (pd.DataFrame({"user": [1.5, 2], "item": [2, 3]}), {}, "1 of 2 .*'1.5'"),
    "a list": (pd.DataFrame({"user": [[1], [2]], "item": [2, 3]}), {}, "is of type array"),
    "an object": (pd.DataFrame({"user": [{"id": 1}], "item": [2]}), {}, "is of type struct"),
    "an event": (*table("user,item,event\n1,2,view\n1,3,wink\n"), "events that .*: wink 1. Use"),
    "stars": (*table("user,item,rating\n1,2,4/5\n"), "1 of 1 cells cannot be cast to .*'4/5'"),
    "no such column": (*table("user,item\n1,2\n", time="when"), "no column 'when'"),
    "a scale of nothing": (*table("user,item\n1,2\n", rating_scale=(1, 5)), "no column looks like"),
    "text": (b"user,item\n1,2\n", {}, "ends in .parquet.*convert the log"),
    "ids in two cases": (
        *table("user,item\n1,2\n", fold_ids=True),
        "`fold_ids` is for one",
    ),
    "a matrix": (*table("user,1,2\n1,0,1\n", layout="matrix"), "whose `layout` is rows"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_spark_cannot_cast_is_refused_in_one_line(tmp_path, engine, name):
    content, columns, message = REFUSED[name]
    log = tmp_path / "log"
    log.mkdir()
    if isinstance(content, bytes):
        (log / "part.csv").write_bytes(content)
    else:
        content.to_parquet(log / "part.parquet")
    with pytest.raises(DataError, match=message) as caught:
        qkv.build(
            tmp_path / "ws", items=write_items(tmp_path), interactions=log, engine=engine,
            columns=qkv.Columns(**columns),
        )  # fmt: skip
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ws" / "root.json").exists()


def test_a_log_that_names_its_items_needs_a_catalog(tmp_path, engine):
    table("user,item,title\na,1,One\n")[0].to_parquet(tmp_path / "log.parquet")
    with pytest.raises(QkvError, match="`items` as a file of their own"):
        qkv.build(tmp_path / "ws", interactions=tmp_path / "log.parquet", engine=engine)


def test_a_log_alone_is_its_catalog(tmp_path, engine):
    """With users of more than 63 bits, in a file whose name could be a pattern."""
    log = drawn_log(n=2000)
    log["item"] = "thing " + log["item"].astype(str)
    log["user"] = log["user"].astype("uint64") + np.uint64(2**63)
    log.to_parquet(tmp_path / "a [1] log.parquet")
    given = {"interactions": tmp_path / "a [1] log.parquet", "encoder": "corpus"}
    here = qkv.build(tmp_path / "here", **given)
    there = qkv.build(tmp_path / "spark", **given, engine=engine)
    assert there.snapshot.facts["n_items"] == here.snapshot.facts["n_items"]
    assert_alike(here, there, n_users=10)


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


@pytest.mark.parametrize("n_bytes", ["", "0"], ids=["few users", "many users"])
def test_a_worker_that_was_killed_is_made_up_for(tmp_path, own_cluster, n_bytes):
    write_items(tmp_path), write_plain(tmp_path)
    own_cluster.environment["QKVSEARCH_SPARK_BROADCAST"] = n_bytes
    own_cluster.environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    (tmp_path / "slowly.py").write_text(SLOWLY)
    command_ = command(tmp_path, own_cluster.master)
    running = subprocess.Popen(
        [sys.executable, str(tmp_path / "slowly.py"), *command_[3:]],
        env=own_cluster.environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 400
    while not (tmp_path / "fourth").exists():
        assert time.monotonic() < until
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.1)
    own_cluster.kill(own_cluster.workers[0])
    (tmp_path / "killed").touch()
    _, said = running.communicate(timeout=600)
    assert running.returncode == 0, said
    assert_like_here(tmp_path)


# Waits after the fourth iteration until a worker is killed.
SLOWLY = """
import pathlib, sys, time
from qkvsearch.cli import main
from qkvsearch.models.implicit_als import AlternatingLeastSquares

folder = pathlib.Path(__file__).parent
init = AlternatingLeastSquares.__init__

def slow(self, *args, callback=None, **kwargs):
    def waiting(done, total):
        if done == 4:
            (folder / "fourth").touch()
            while not (folder / "killed").exists():
                time.sleep(0.1)
    init(self, *args, callback=waiting, **kwargs)

AlternatingLeastSquares.__init__ = slow
main(sys.argv[1:])
"""


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


def test_spark_without_an_address_uses_this_machine_and_no_code_of_the_folder(
    tmp_path, spark_cluster
):
    write_items(tmp_path), write_plain(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "pyspark.py").write_text("open('it-ran', 'w')")
    (tmp_path / "folder" / ".numba_config.yaml").write_text("chrome_trace: it-ran")
    subprocess.run(
        command(tmp_path, "spark"), env=spark_cluster.environment, check=True,
        capture_output=True, text=True, cwd=tmp_path / "folder",
    )  # fmt: skip
    assert not (tmp_path / "folder" / "it-ran").exists()
    assert_like_here(tmp_path)
