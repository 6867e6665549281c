"""Output: five formats and a file of each kind hold the same hits; tables fit their window."""

import csv
import io
import json
import re
import sys
from collections import Counter

import click
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from qkvsearch.cli.text_table import is_too_narrow, to_table

FIELDS = ["rank", "id", "title", "score", "weight"]
QUESTION = ("search", "attention", "-k", "5")


def rows_of_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def rows_of_markdown(text):
    lines = [line[2:-2].split(" | ") for line in text.splitlines()]
    assert set(lines[1]) == {"---"}
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


PARSERS = {
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
    "csv": rows_of_csv,
    "markdown": rows_of_markdown,
}


@pytest.fixture
def expected(videos):
    return videos.search("attention", k=5).to_records()


@pytest.mark.parametrize("name", ["json", "jsonl"])
def test_json_numbers_are_unrounded(qkv, videos_path, expected, name):
    answer = qkv("-w", videos_path, *QUESTION, "--format", name)
    assert PARSERS[name](answer.stdout) == expected
    assert all(list(row)[:5] == FIELDS for row in PARSERS[name](answer.stdout))


def test_csv_numbers_are_unrounded(qkv, videos_path, expected):
    rows = rows_of_csv(qkv("-w", videos_path, *QUESTION, "--format", "csv").stdout)
    assert [float(row["score"]) for row in rows] == [row["score"] for row in expected]
    assert [float(row["weight"]) for row in rows] == [row["weight"] for row in expected]


def test_a_cell_of_csv_is_one_text_a_person_reads(qkv, videos_path, videos):
    (row,) = rows_of_csv(
        qkv("-w", videos_path, *QUESTION[:2], "-k", 1, "--explain", "--format", "csv").stdout
    )
    (hit,) = videos.search("attention", k=1, explain=True)
    heads = dict(entry.rsplit(": ", 1) for entry in row["heads"].split("; "))
    assert {name: float(value) for name, value in heads.items()} == pytest.approx(
        hit.heads, abs=1e-6
    )
    assert row["matches"] == "; ".join(f"{name}: {', '.join(w)}" for name, w in hit.matches.items())
    values = re.findall(r"\(([-+][\d.e-]+)\)(?:; |$)", row["parts"])
    assert sum(map(float, values)) == pytest.approx(hit.score, abs=1e-3)


def test_a_table_has_a_line_for_each_hit_with_its_id_last(qkv, videos_path, expected):
    answer = qkv("-w", videos_path, *QUESTION)
    hits = [line.split() for line in answer.stdout.splitlines() if re.match(r"\d", line.strip())]
    assert [(int(hit[0]), hit[-1]) for hit in hits] == [
        (row["rank"], row["id"]) for row in expected
    ]


def test_a_parquet_file_is_a_table_of_the_same_hits(qkv, videos_path, tmp_path, expected):
    pytest.importorskip("pyarrow", reason="writing Parquet needs the extra [parquet]")
    answer = qkv("-w", videos_path, *QUESTION, "-o", "a.parquet")
    assert (answer.code, answer.stdout) == (0, "")
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert frame[FIELDS].to_dict("records") == [
        {name: row[name] for name in FIELDS} for row in expected
    ]


def test_a_file_of_another_name_holds_the_table(qkv, videos_path, tmp_path):
    on_stdout = qkv("-w", videos_path, *QUESTION).stdout
    assert qkv("-w", videos_path, *QUESTION, "-o", "a.txt").code == 0
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == on_stdout


def test_format_has_the_last_word_over_the_name_of_a_file(qkv, videos_path, tmp_path, expected):
    qkv("-w", videos_path, *QUESTION, "-o", "a.csv", "--format", "json")
    assert json.loads((tmp_path / "a.csv").read_text(encoding="utf-8")) == expected


@pytest.mark.parametrize("file", ["a.json", "a.parquet"])
def test_a_file_that_cannot_be_written_is_a_clear_error(qkv, videos_path, file):
    answer = qkv("-w", videos_path, *QUESTION, "-o", f"nowhere/{file}")
    assert answer.code == 1
    assert answer.stderr.startswith(f"Error: nowhere/{file}: cannot write: ")
    assert not answer.stderr.rstrip().endswith("None")


@pytest.mark.parametrize("name", ["json", "jsonl", "csv", "markdown", "table"])
def test_no_hits_are_an_empty_listing_and_a_word_on_stderr(qkv, videos_path, name):
    answer = qkv("-w", videos_path, "search", "zzqx wvvk", "--format", name)
    assert answer.code == 0
    assert "No hits" in answer.stderr
    if name == "table":
        assert answer.stdout == ""
    else:
        assert PARSERS[name](answer.stdout) == []


def test_a_listing_of_nothing_still_has_its_header(qkv, videos_path, tmp_path):
    run = ("-w", videos_path)
    hits = qkv(*run, "search", "sea", "--explain", "--fields", "channel", "--format", "csv").stdout
    nothing = (*run, "search", "zzqx", "--explain", "--fields", "channel", "--format", "csv")
    assert qkv(*nothing).stdout == hits.splitlines(True)[0]
    attended = qkv(*run, "attend", "guitar", "--format", "csv").stdout
    assert qkv(*run, "attend", "zzqx", "--format", "csv").stdout == attended.splitlines(True)[0]
    pytest.importorskip("pyarrow", reason="writing Parquet needs the extra [parquet]")
    qkv(*run, "search", "zzqx", "-o", "a.parquet")
    assert list(pd.read_parquet(tmp_path / "a.parquet").columns) == [*FIELDS, "match", "heads"]


CELLS = st.one_of(
    st.text(st.sampled_from("abc Z09-.,:%'注é́🙂\u00a0|~"), max_size=14),
    st.lists(st.text("ab-,", min_size=1, max_size=7), max_size=9).map(" ".join),
)


TABLES = st.lists(st.sampled_from(["left", "right", "wrap"]), min_size=1, max_size=4).flatmap(
    lambda layouts: st.tuples(
        st.lists(CELLS, min_size=len(layouts), max_size=len(layouts)).map(
            lambda names: list(zip(names, layouts, strict=True))
        ),
        st.lists(st.lists(CELLS, min_size=len(layouts), max_size=len(layouts)), max_size=4),
    )
)


@given(TABLES, CELLS, st.integers(16, 60))
def test_a_table_fits_into_the_window_and_loses_no_sign(table, caption, width):
    columns, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        text = to_table(columns, rows, caption)
        is_list = is_too_narrow(columns, rows)
    assert all(cell_len(line) <= width for line in text.splitlines())
    written = [caption, *(cell for row in rows for cell in row)]
    if not is_list:
        written += [name for name, _ in columns]
        assert Counter(signs(text)) == Counter(signs("".join(written)))
    else:  # each row has the headings of its own
        assert Counter(signs("".join(written))) <= Counter(signs(text))


@given(TABLES, CELLS, st.integers(16, 60))
def test_styles_change_nothing_but_the_style(table, caption, width):
    columns, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm-256color")
        plain = to_table(columns, rows, caption)
        patch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        styled = to_table(columns, rows, caption)
    assert click.unstyle(styled) == plain


def signs(text):
    return re.sub(r"\s", "", text)


def test_what_fits_is_written_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)  # an import of it fails
    monkeypatch.setenv("COLUMNS", "17")
    columns, rows = [("n", "right"), ("title", "wrap")], [[1, "Heat"], [12, "A title of words"]]
    assert to_table(columns, rows, "two") == (
        " n  title\n 1  Heat\n12  A title of\n    words\ntwo\n"
    )
