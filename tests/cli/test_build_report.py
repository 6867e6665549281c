"""`build --report`: one report of every column, row and cell, as JSON, text and page."""

import json
import re

import pandas as pd
import pytest

from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset

N = 60
ODD = {5: "ask in the shop", 6: "n/a", 7: "sold <b>out</b>, see shop@example.com"}
GOODS = pd.DataFrame(
    {
        "id": range(1, N + 1),
        "title": [f"Tent {n}" if n != 9 else None for n in range(1, N + 1)],
        "price": [ODD.get(n, f"${n}.50" if n % 2 else f"{n}.5") for n in range(1, N + 1)],
        "url": [f"https://example.org/{n}" for n in range(1, N + 1)],
        "tags": ["red,blue" if n % 2 else "red" for n in range(1, N + 1)],
    }
)
EVENTS = pd.DataFrame(
    {
        "user": [*(f"u{n % 5}@example.com" for n in range(70)), None],
        "item": [*(1 + n % (N + 4) for n in range(70)), 3],
        "quantity": [*("2 pcs" if n == 20 else "1" for n in range(70)), "1"],
    }
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    GOODS.to_csv(folder / "goods.csv", index=False)
    EVENTS.to_csv(folder / "events.csv", index=False)
    return folder


@pytest.fixture
def planned(files, qkv):
    """The reports of a plan, by suffix. They are written for the first test that asks for them."""
    reports = {}
    for suffix in ("json", "txt", "html"):
        path = files / f"plan.{suffix}"
        sources = ["--items", files / "goods.csv", "--interactions", files / "events.csv"]
        if not path.exists():
            done = qkv("-w", files / "w", "build", *sources, "--plan", "--report", path)
            assert done.code == 0, done.stderr
        reports[suffix] = path.read_text("utf-8")
    assert not (files / "w").exists()
    return reports


@pytest.fixture
def told(planned):
    return json.loads(planned["json"])


def test_every_column_says_what_became_of_its_cells(told):
    columns = {column["name"]: column for column in told["columns"]}
    assert list(columns) == list(GOODS.columns)
    price = columns["price"]
    n_dollars = sum(cell.startswith("$") for cell in GOODS["price"])
    assert (price["type"], price["empty"], price["changed"]) == ("number", 3, n_dollars + 3)
    assert price["changes"]["$ removed"] == n_dollars
    assert price["examples"][0] == "ask in the shop"
    assert {"n/a", "$1.50"} <= {*price["examples"]}
    assert (columns["title"]["empty"], columns["title"]["changed"]) == (0, 1)
    assert (columns["url"]["changed"], columns["url"]["examples"]) == (0, [])
    assert (told["built"], told["items"], told["users"]) == (False, N, 5)


def test_searched_and_filtered_columns_are_named(told):
    assert {"title"} <= {*told["searched"]} <= {"title", "tags"}
    assert told["not_searched"] == {"url": "links"}
    assert "price" in told["filtered"]
    assert not {"id", "title"} & {*told["filtered"]}


def test_skipped_rows_are_counted_with_three_examples_each(told):
    goods, events = told["files"]
    assert (goods["read"], goods["kept"], goods["skipped"], goods["of"]) == (N, N, 0, "items")
    reasons = {reason["reason"]: reason for reason in events["reasons"]}
    unknown = reasons["with an item that is not in the catalog"]
    assert (unknown["rows"], unknown["examples"]) == (4, ["62", "63", "64"])
    assert reasons["without a user"]["examples"] == ["72"]
    assert events["read"] == events["kept"] + events["combined"] + events["skipped"]
    columns = {column["name"]: column for column in told["interaction_columns"]}
    assert (columns["quantity"]["changed"], columns["quantity"]["examples"]) == (1, ["2 pcs"])
    assert columns["user"]["empty"] == 1


def test_no_report_repeats_a_user(planned):
    for text in planned.values():
        assert "@example.com" not in text


def test_the_text_and_the_page_tell_the_same(planned, told):
    page, text = planned["html"], " ".join(planned["txt"].split())
    assert max(map(len, planned["txt"].splitlines())) <= 80
    for column in told["columns"]:
        assert f"{column['name']}: {column['type']}" in text
        assert f'<th scope="row">{column["name"]}</th>' in page
    for said in ("ask in the shop", "$ removed (28)", "with an item that is not in the catalog"):
        assert said in text
        assert said in page
    assert "row 62, 63, 64" in text
    assert "<b>out" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|src=", page)


def test_a_build_also_tells_what_it_learned(files, qkv, told):
    path = files / "built.json"
    done = qkv(
        *("-w", files / "built", "build", "--items", files / "goods.csv"),
        *("--encoder", "corpus", "--report", path),
    )
    assert done.code == 0, done.stderr
    report = json.loads(path.read_text("utf-8"))
    assert report["built"]
    assert report["users"] is None
    assert report["columns"] == told["columns"]
    for line in report["lines"]:
        assert line in done.stderr.replace("\n", " ")
    assert any(line.startswith("Encoder: corpus") for line in report["lines"])


@pytest.mark.parametrize("name", ["plan.pdf", "plan", "none/plan.txt"])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(files, qkv, name):
    done = qkv("-w", files / "w", "build", files / "goods.csv", "--report", files / name)
    assert done.code == 2
    assert "--report" in done.stderr
    assert not (files / "w").exists()


def test_a_report_never_replaces_what_is_read(files, qkv):
    goods = files / "goods.json"
    GOODS.head(3).to_json(goods, orient="records")
    before = goods.read_bytes()
    done = qkv("-w", files / "w", "build", "--items", goods, "--plan", "--report", goods)
    assert done.code == 2
    assert goods.read_bytes() == before


@pytest.mark.parametrize("option", ["--join={}.txt", "--items={}.*", "--texts={{id}}.txt"])
def test_a_report_never_replaces_what_is_read_beside_the_items(files, qkv, option):
    text = files / "a.txt"
    text.write_text("id,size\na,7\n")
    other = option.replace("{}", str(files / "a")).replace("{{id}}", str(files / "{id}"))
    goods = files / "goods.json"
    GOODS.head(3).to_json(goods, orient="records")
    done = qkv("-w", files / "w", "build", f"--items={goods}", other, "--plan", "--report", text)
    assert done.code == 2
    assert "would replace" in done.stderr
    assert text.read_text() == "id,size\na,7\n"


def test_a_build_tells_how_long_texts_are_searched(files, qkv):
    talks = files / "long"
    talks.mkdir()
    (talks / "long.txt").write_text("The ferry left the harbour at noon. " * 60)
    (talks / "short.txt").write_text("A talk on otters")
    log = files / "log.csv"
    log.write_text("user,item\nann,long\nbob,short\n")
    report = files / "report.json"
    run = ("-w", files / "w", "build", "--items", talks, "--interactions", log)
    done = qkv(*run, "--report", report)
    (line,) = [line for line in json.loads(report.read_text())["lines"] if "passages" in line]
    assert "1 long text" in line
    assert line in done.stderr


def test_a_report_is_no_document_of_the_folder_that_is_read(files, qkv):
    talks = files / "talks"
    talks.mkdir()
    (talks / "a.txt").write_text("A talk on otters")
    run = ("-w", files / "w", "build", "--items", talks, "--plan", "--report")
    assert qkv(*run, talks / "report.html").code == 2
    assert qkv(*run, talks / "report.json").code == 0


def test_rows_of_several_files_are_named_with_their_file(files):
    dataset = read_dataset(
        [GOODS.iloc[:20], GOODS.iloc[20:]],
        [EVENTS.iloc[:30], EVENTS.iloc[30:]],
        Columns(weight="quantity"),
    )
    report = dataset.reports[1]
    rows = report.sample_rows["with an item that is not in the catalog"]
    places = [report.where(row) for row in rows]
    assert places == [f"{row} of interactions 2" for row in (30, 31, 32)]
