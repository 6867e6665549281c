"""Recommendations for all users: the same as one by one, in every format."""

import csv
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.heads import histories

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
    monkeypatch.setattr(histories, "BLOCK", 64)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_user(rows):
    found = {}
    for row in rows:
        found.setdefault(str(row["user"]), []).append(row)
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_everyone_gets_what_they_get_alone(films, tmp_path, small_blocks, options):
    films.record("newcomer", "Alien", 5)
    films.record("u003", "Heat", 5)
    films.record("grump", "Alien", 1)
    assert films.recommend_all(tmp_path / "all.csv", **options).users == 402
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
        done = shop.recommend_all(tmp_path / name, k=2)
        without, weak = done.notes
        assert without.startswith("No recommendations for 1 of 7 users")
        assert done.n_without == 1
        assert weak.startswith("Weak: the recommendations of 1 of 7 users")
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert {type(row[name]) for row in rows for name in ("user", "id")} == {int}
    assert list(rows[0]) == ["user", "rank", "id", "title", "score"]
    table = parquet.read_table(tmp_path / "all.parquet")
    assert table.to_pylist() == [row | {"score": pytest.approx(row["score"])} for row in rows]
    assert [row["title"] for row in rows_of(tmp_path / "all.csv")] == [r["title"] for r in rows]


def test_blocks_are_smaller_for_a_larger_k(films):
    everyone = films.current_build.recommender.histories
    assert everyone.blocks(10) == [(0, 400)]
    assert max((stop - start) * 1000 for start, stop in everyone.blocks(1000)) <= histories.ROWS
    assert everyone.blocks(10**9)[-1] == (399, 400)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_users_nor_with_k(tmp_path, shop_items, monkeypatch):
    monkeypatch.setattr(histories, "BLOCK", 32)
    monkeypatch.setattr(histories, "ROWS", 32 * 12)
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
    "option",
    [
        *("--user=u001", "--like=Heat", "--explain", "--diversity=.3", "--temperature=1"),
        *("--rate=Heat=5", "--without=Heat", "--exclude=Heat"),
    ],
)
def test_what_is_for_one_user_is_wrong_usage_for_all(qkv, movies_path, option):
    answer = qkv("-w", movies_path, "recommend", "--all-users", "-o", "x.csv", option)
    assert (answer.code, answer.stdout) == (2, "")
    assert f"{option.split('=')[0]} is for one user" in answer.stderr


def test_a_file_for_all_users_or_a_user_is_named(qkv, movies_path):
    for args, said in ((["--all-users"], "name a file for all users"), ([], "name a user")):
        answer = qkv("-w", movies_path, "recommend", *args)
        assert (answer.code, answer.stdout) == (2, "")
        assert said in answer.stderr


def test_an_allow_list_comes_from_a_file_or_stdin_and_unknown_ids_are_counted(
    qkv, movies_path, tmp_path
):
    (tmp_path / "stock.txt").write_text("m056\n\n m078 \nnowhere\n", encoding="utf-8-sig")
    command = ["-w", movies_path, "recommend", "--like", "m200", "--format", "json", "--only"]
    from_file = qkv(*command, "stock.txt")
    from_stdin = qkv(*command, "-", stdin="m056\nm078\n")
    assert {row["id"] for row in from_file.json()} == {"m056", "m078"}
    assert from_stdin.json() == from_file.json()
    everyone = ["-w", movies_path, "recommend", "--all-users", "-o", "all.csv", "--only"]
    for answer in (from_file, qkv(*everyone, "stock.txt")):
        assert "--only: 1 of 3 ids, such as 'nowhere', is not in the catalog" in answer.stderr
    assert "--only" not in from_stdin.stderr
    missing = qkv(*command, "-", stdin="nowhere\n")
    assert (missing.code, missing.stdout) == (1, "")
    assert "none of its 1 ids, such as 'nowhere'" in missing.stderr


# --- in memory, and for some users ---


def test_without_a_file_all_recommendations_are_a_frame(shop, tmp_path):
    shop.recommend_all(tmp_path / "all.jsonl", k=2)
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    done = shop.recommend_all(k=2)
    frame = done.to_frame()
    assert list(frame.columns) == ["user", "rank", "id", "title", "score"]
    assert frame.to_dict("records") == [json.loads(line) for line in lines]
    assert (done.users, len(done.notes)) == (7, 2)
    assert list(shop.recommend_all(where="made < 0", fields="made").to_frame()) == [
        *("user", "rank", "id", "title", "score", "made")
    ]


def test_what_went_to_a_file_is_no_frame(shop, tmp_path):
    written = shop.recommend_all(tmp_path / "all.csv")
    with pytest.raises(QkvError, match=r"all\.csv"):
        written.to_frame()
    for option in ({"format": "csv"}, {"raw": True}):
        with pytest.raises(QkvError, match="`path`"):
            shop.recommend_all(**option)


def test_several_users_get_what_each_gets_alone(films):
    options = {"k": 4, "where": "year >= 1990", "damping": 0.2, "explain": True}
    users = ["u003", "nobody", "u001"]
    found = films.recommend_many(users, **options)
    alone = [films.recommend(user=user, **options) for user in users]
    assert [ranking.to_records() for ranking in found] == [r.to_records() for r in alone]
    assert [list(ranking.notes) for ranking in found] == [list(r.notes) for r in alone]
    assert films.recommend_many([]) == []
    assert len(films.recommend_many("u001")) == 1
    with pytest.raises(QkvError, match="nobody"):
        films.recommend_many(users, strict_user=True)
    with pytest.raises(QkvError, match="recommend_many"):
        films.recommend(user=users)
    for option in ({"wher": "year > 1990"}, {"user": "u001"}):
        with pytest.raises(TypeError, match=r"recommend_many\(\).*'(wher'.*where|user)"):
            films.recommend_many([], **option)
