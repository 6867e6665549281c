"""`build` and `info` say what each column was taken for, in lines that fit a screen."""

import pytest
from rich.cells import cell_len

from qkvsearch.cli.columns import MAX_ROWS, columns_text

SHOP = """SKU;Name;Description;Price;Tags;Added
001;Tent;"<p>A&nbsp;tent</p><ul><li>red</li></ul>";$1,299.00;camp|night;2024-03-01
002;Rope;<div>A rope</div>;66,80 €;climb;01/03/2024
003;Lamp;A lamp;N/A;night|camp;March 1, 2024
"""
ORDERS = """customer_email,product_sku,quantity,ordered_at
ann@example.org,001,2,2024-03-01 10:00:00
bob@example.org,002,1,2024-03-02 10:00:00
"""


@pytest.fixture
def shop(qkv, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "products.csv").write_text(SHOP, encoding="utf-8")
    (tmp_path / "orders.csv").write_text(ORDERS, encoding="utf-8")
    return "build", "--items", "products.csv", "--interactions", "orders.csv", "--encoder", "corpus"


def record(name="price", role="", type_="number", empty=0.0, example="5", **changed):
    words = {what.replace("_", " "): count for what, count in changed.items()}
    return {
        "name": name, "role": role, "type": type_, "empty": empty, "example": example,
        "changed": words, "stored": "",
    }  # fmt: skip


def test_build_says_a_line_a_column_and_info_repeats_it(qkv, shop):
    built = qkv("-w", "ws", *shop)
    assert built.code == 0
    (price,) = (line for line in built.stderr.splitlines() if line.startswith("Price "))
    assert price.split()[:4] == ["Price", "number", "33%", "1299.0"]
    *said, _, _ = built.stderr.splitlines()  # but for what comes next
    assert len(said) <= 24
    info = qkv("-w", "ws", "info").stdout.splitlines()
    for name in ("SKU", "Price", "Tags", "Added"):
        (line,) = (line for line in built.stderr.splitlines() if line.startswith(f"{name} "))
        assert any(line.startswith(shown) for shown in info if shown.startswith(f"{name} "))
    assert "weight = quantity, time = ordered_at" in " ".join(" ".join(info).split())
    assert len(info) <= 24


def test_with_v_build_and_info_show_the_columns_of_the_log_as_well(qkv, shop):
    built = qkv("-v", "-w", "ws", *shop)
    info = qkv("-v", "-w", "ws", "info").stdout.splitlines()
    for name in ("SKU", "quantity", "ordered_at"):
        (line,) = (line for line in built.stderr.splitlines() if line.startswith(f"{name} "))
        assert line in info


def test_info_as_json_has_a_record_a_column(qkv, shop):
    assert qkv("-w", "ws", *shop).code == 0
    (info,) = qkv("-w", "ws", "info", "--format", "json").json()
    columns = {column["name"]: column for column in info["columns"]}
    assert {name: column["type"] for name, column in columns.items()} == {
        "SKU": "text", "Name": "text", "Description": "text", "Price": "number", "Tags": "list",
        "Added": "date",
    }  # fmt: skip
    assert [columns[name]["role"] for name in ("SKU", "Name", "Tags")] == ["id", "title", "text"]
    assert columns["Price"]["changed"] == {
        "$ removed": 1, "€ removed": 1, "separators removed": 1, "decimal comma read": 1,
        "N/A emptied": 1,
    }  # fmt: skip
    assert columns["Description"]["changed"] == {"HTML removed": 2}
    assert {column["role"] for column in info["interaction_columns"]} >= {"user", "item", "time"}


def test_a_type_that_is_told_is_taken(qkv, shop):
    assert qkv("-w", "ws", *shop, "--column", "price:text", "--column", "SKU:text").code == 0
    assert qkv("-w", "ws", "search", "tent", "--where", "price = '$1,299.00'").code == 0


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Name:number", "column 'Name' is the title, which is text"),
        ("SKU:date", "column 'SKU' is the id, which is text"),
    ],
)
def test_a_type_that_cannot_be_is_an_error(qkv, shop, told, said):
    answer = qkv("-w", "ws", *shop, "--column", told)
    assert answer.code == 1
    assert "products.csv" in answer.stderr
    assert said in answer.stderr


def test_more_columns_than_fit_are_summed_up_unless_verbose(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    columns = [record("SKU", "id", "text"), record("Name", "title", "text")]
    columns += [record(f"size {n}") for n in range(30)]
    columns += [record("price", emptied_=7) | {"changed": {"emptied: no number": 7}}]
    text = columns_text(columns, [])
    lines = text.splitlines()
    assert len(lines) == MAX_ROWS + 2  # the headings and the sum
    assert lines[1].startswith("SKU")
    assert lines[MAX_ROWS].startswith("price")  # what lost cells is shown before others
    assert lines[-1] == f"and {len(columns) - MAX_ROWS} more columns: 24 number (-v shows them)"
    assert len(columns_text(columns, [], verbose=True).splitlines()) == len(columns) + 1


def test_an_example_of_several_paragraphs_is_on_one_line():
    text = columns_text([record("text") | {"example": "A tent\n\n  for rain"}], [])
    assert len(text.splitlines()) == 2
    assert "A tent for rain" in text


@pytest.mark.parametrize(
    ("share", "said"), [(0, "0%"), (0.0004, "<1%"), (0.5, "50%"), (0.9999, ">99%"), (1, "100%")]
)
def test_the_share_of_gaps_is_never_said_to_be_none_or_all_where_it_is_not(share, said):
    assert said in columns_text([record(empty=share)], []).splitlines()[1].split()


def test_losses_come_first_and_then_what_was_done_most_often(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    changed = {"$ removed": 3, "HTML removed": 9, "emptied: no number": 1, "ambiguous: 1.234": 1}
    (_, line) = columns_text([record() | {"changed": changed}], []).splitlines()
    said = "emptied: no number (1), ambiguous: 1.234 (1), HTML removed (9), $ removed (3)"
    assert line.endswith(said)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_lines_of_columns_fit_the_window_and_examples_are_cut_unless_verbose(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    facts = [record("商品名称商品名称", "title", "text", example="§" * 100, **{"¤" * 100: 3})]
    for verbose in (False, True):
        text = columns_text(facts, [], verbose=verbose)
        assert all(cell_len(line) <= width for line in text.splitlines())
        assert text.count("¤") == 100
        assert (text.count("§") == 100) == verbose


def test_one_further_column_is_one():
    columns = [record(f"size {n}") for n in range(MAX_ROWS + 1)]
    last = columns_text(columns, []).splitlines()[-1]
    assert last.startswith("and 1 more column: 1 ")
    assert "them" not in last
