"""Hits that can be used: own columns, pages, listings, one item, a removal that is tried first."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

import qkvsearch as qkv_package


@pytest.fixture
def shop(shop_path):
    return ("-w", shop_path)


@pytest.fixture(scope="module")
def goods(tmp_path_factory):
    """Columns as their owner spells them, among them some that hits have names for."""
    frame = pd.DataFrame(
        {
            "SKU": [f"{n:04d}" for n in range(1, 31)],
            "Name": [f"{'red' if n % 2 else 'blue'} tent {n}" for n in range(1, 31)],
            "Price": [n * 10.5 for n in range(1, 31)],
            "score": range(100, 130),
            "About": ["a long text that no table of eighty columns has the room for " * 3] * 30,
        }
    )
    columns = qkv_package.Columns(id="SKU", title="Name", text=["Name"])
    path = tmp_path_factory.mktemp("goods") / "ws"
    qkv_package.build(path, items=frame, columns=columns, encoder="corpus").close()
    return ("-w", path)


# --- fields ---


@pytest.mark.parametrize("question", [("search", "tent"), ("similar", "0001"), ("items",)])
def test_own_columns_are_in_every_format_as_their_owner_spells_them(qkv, goods, question):
    ask = (*goods, *question, "--fields", "price, NAME,sku", "-k", 3, "--format")
    found = qkv(*ask, "json").json()
    assert all(row["Price"] == int(row["id"]) * 10.5 for row in found)
    assert all(row["Name"] == row["title"] and row["SKU"] == row["id"] for row in found)
    assert [json.loads(line) for line in qkv(*ask, "jsonl").stdout.splitlines()] == found
    table = csv.DictReader(io.StringIO(qkv(*ask, "csv").stdout))
    assert [float(row["Price"]) for row in table] == [row["Price"] for row in found]
    assert "| Price | Name | SKU |" in qkv(*ask, "markdown").stdout


def test_recommendations_have_own_columns_for_one_and_for_all(qkv, shop):
    hit, *_ = qkv(*shop, "recommend", "--user", 101, "--fields", "made", "--format", "json").json()
    assert isinstance(hit["made"], int)
    assert list(hit)[:6] == ["rank", "id", "title", "score", "weight", "made"]
    ask = (*shop, "recommend", "--all-users", "--fields", "made", "-k", 2)
    assert qkv(*ask, "-o", "all.csv").code == 0
    assert Path("all.csv").read_text().startswith("user,rank,id,title,score,made\n")
    frame = pd.read_csv("all.csv")
    assert frame["made"].dtype == "int64"
    pytest.importorskip("pyarrow", reason="writing Parquet needs the extra [parquet]")
    assert qkv(*ask, "-o", "all.parquet").code == 0
    pd.testing.assert_frame_equal(
        pd.read_parquet("all.parquet"), frame, check_dtype=False, rtol=1e-6
    )


def test_a_column_that_is_called_like_a_part_of_a_hit_does_not_replace_it(qkv, goods):
    hit, *_ = qkv(*goods, "search", "tent", "--fields", "score", "-k", 1, "--format", "json").json()
    assert hit["items.score"] == int(hit["id"]) + 99
    assert hit["score"] != hit["items.score"]


def test_columns_of_a_table_give_way_to_eighty_characters(qkv, goods):
    for question in (("search", "tent"), ("items",)):
        text = qkv(*goods, *question, "--fields", "price,about,name", "-k", 5).stdout
        assert "Price" in text
        assert max(map(len, text.splitlines())) <= 80


# --- CSV for spreadsheets ---


@pytest.fixture
def formulas(qkv):
    Path("items.csv").write_text("id,title\n=a,+1 tent\nb,rope\nc,-5\n")
    Path("log.csv").write_text("user,item\n@u,=a\n@u,b\nv,b\nv,c\n")
    built = qkv("-w", "ws", "build", "--items", "items.csv", "--interactions", "log.csv")
    assert built.code == 0, built.stderr
    return ("-w", "ws")


def test_what_a_spreadsheet_would_run_is_neutralised_counted_and_said(qkv, formulas):
    answer = qkv(*formulas, "items", "--format", "csv")
    assert answer.stdout == "id,title\n'=a,'+1 tent\nb,rope\nc,-5\n"
    assert "2 cells that a spreadsheet would run as a formula got an apostrophe" in answer.stderr
    assert "(in id, title)" in answer.stderr
    assert "--raw" in answer.stderr
    answer = qkv(*formulas, "items", "--format", "csv", "--raw")
    assert answer.stdout == "id,title\n=a,+1 tent\nb,rope\nc,-5\n"
    assert answer.stderr == ""


def test_so_it_is_in_a_table_for_all_users(qkv, formulas):
    ask = (*formulas, "recommend", "--all-users", "--seen", "-o", "all.csv")
    answer = qkv(*ask)
    assert "got an apostrophe before them (in user, id, title)" in answer.stderr
    found = pd.read_csv("all.csv", dtype=str)
    assert set(found["user"]) == {"'@u", "v"}
    assert "'=a" in set(found["id"])
    assert "apostrophe" not in qkv(*ask, "--raw").stderr
    assert set(pd.read_csv("all.csv", dtype=str)["user"]) == {"@u", "v"}


# --- pages ---


def test_beyond_the_last_hit_that_is_said(qkv, goods):
    answer = qkv(*goods, "search", "tent", "--offset", 500)
    assert (answer.code, answer.stdout) == (0, "")
    assert "No hits: of 30 candidates none from position 501 on." in answer.stderr


# --- listings ---


def test_items_are_listed_filtered_and_paged(qkv, goods):
    ask = (*goods, "items", "--where", "price < 80")
    assert [row["id"] for row in qkv(*ask, "-k", 100000, "--format", "json").json()] == [
        f"{n:04d}" for n in range(1, 8)
    ]
    found = qkv(*ask, "-k", 2, "--offset", 5, "--fields", "PRICE", "--format", "json").json()
    assert found == [
        {"id": "0006", "title": "blue tent 6", "Price": 63.0},
        {"id": "0007", "title": "red tent 7", "Price": 73.5},
    ]


def test_a_table_ends_with_how_many_there_are(qkv, goods):
    assert qkv(*goods, "items").stdout.splitlines()[-1] == "1 to 20 of 30 items"
    assert qkv(*goods, "items", "-k", 100).stdout.splitlines()[-1] == "30 items"
    answer = qkv(*goods, "items", "--where", "price < 0")
    assert (answer.stdout, answer.stderr) == ("", "No items.\n")


def test_users_are_listed_and_paged(qkv, shop_copy):
    shop = ("-w", shop_copy)
    assert qkv(*shop, "record", "new", "red apple", 5).code == 0
    everyone = qkv(*shop, "users", "-k", 100, "--format", "json").json()
    assert everyone[-1] == {"id": "new", "interactions": 1, "recorded": 1}
    assert all(isinstance(row["id"], int) for row in everyone[:-1])
    assert qkv(*shop, "users", "-k", 2, "--offset", 1, "--format", "json").json() == everyone[1:3]


def test_an_item_is_shown_with_all_its_columns_as_one_object(qkv, goods):
    card = qkv(*goods, "show", "red tent 3", "--format", "json").json()
    assert card["id"] == card["SKU"] == "0003"
    assert (card["Price"], card["items.score"], card["users"]) == (31.5, 102, 0)
    assert "About" in qkv(*goods, "show", "0003").stdout


# --- a removal, tried first ---


def test_a_dry_run_lists_what_would_leave_and_changes_nothing(qkv, shop_copy):
    shop = ("-w", shop_copy)
    before = qkv(*shop, "items", "-k", 100, "--format", "json").json()
    ask = (*shop, "remove", "--where", "made > 2005")
    answer = qkv(*ask, "--dry-run", "--format", "json")
    would_leave = answer.json()
    assert would_leave
    assert f"{len(would_leave)} would be removed (made > 2005), with" in answer.stderr
    assert f"Among them: {would_leave[0]['title']}" in answer.stderr
    assert qkv(*shop, "items", "-k", 100, "--format", "json").json() == before

    said = answer.stderr.splitlines()[0].replace(" would be removed", " removed")
    done = qkv(*ask)
    assert done.stderr.splitlines()[0] == said.replace(" would stay", "")
    left = qkv(*shop, "items", "-k", 100, "--format", "json").json()
    assert left == [row for row in before if row not in would_leave]


def test_info_says_how_many_users_came_since_the_build(qkv, shop_copy):
    assert "since the build" not in qkv("-w", shop_copy, "info").stdout
    engine = qkv_package.open(shop_copy)
    engine.record("newcomer", engine.items.to_frame()["id"][0])
    assert "users (1 more since the build)" in qkv("-w", shop_copy, "info").stdout
