"""Tables in pieces: the same log, report and catalog as in one piece, whatever is in them."""

import random
import re
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils import scratch
from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.tables import read_encoded, read_table
from qkvsearch.tables.frames import as_text
from qkvsearch.tables.sources import read_source
from qkvsearch.tables.table import (
    NumberColumn,
    TableBuilder,
    TextColumn,
    different_rows,
    table_of,
)
from tests.tables.messy import messy_table

ITEMS = pd.DataFrame({"id": ["1", "2", "u1"], "title": ["a", "b", "c"]})
CELLS = {
    "user": ["1", "2", "3", " 2", "7.0", "007", "u1", "U1", "u1 ", "", None, "\u00a0", "-4",
             "9007199254740993", "-9223372036854775808"],
    "sku": ["1", "2", "3", "u1", "U1", None],
    "rating": ["1", "2", "3", "4", "5", "4.5", "", None, "N/A", "3,5", "five", "1e400", "-1", "35"],
    "quantity": ["1", "2", "0", "-1", "-2", "3.5", "", None, "many", "1e13"],
    "time": ["1709290000", "1709290001", "1709290000000", "2024-03-01", "1/3/2024", "13/3/2024",
             None, "soon", "20240301", "45352", "3", "-5", "1709290000.5"],
    "title": ["a tent", "b tent", "c d", None],
}  # fmt: skip
TIDY = {
    "user": ["1", "2", "30"], "sku": ["1", "2", "3"], "rating": ["1", "4", "5"],
    "quantity": ["1", "2", "-1"], "title": ["a tent", "b tent"],
}  # fmt: skip
TIMES = (
    ["1709290000", "1709290009"], ["2024-03-01", "2024-03-02"], ["45352", "45353"],
    ["20240301", "20240302"], ["1", "2"], ["1709290000000", "1709290005000"],
)  # fmt: skip


def messy_log(seed):
    """Columns of a log, some tidy and some as nobody should write them."""
    rng = random.Random(seed)
    n = rng.choice([1, 2, 5, 12, 40])
    columns = {}
    for name, cells in CELLS.items():
        if name in ("user", "sku") or rng.random() < 0.5:
            tidy = TIDY.get(name) or rng.choice(TIMES)
            usual = rng.sample(cells, 4) if rng.random() < 0.5 else tidy
            columns[name] = [rng.choice(cells if rng.random() < 0.03 else usual) for _ in range(n)]
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def state(read, *args):
    """All that is known of what was read, or the error."""
    try:
        found = read(*args)
    except DataError as error:
        return str(error)
    log, frame = found.interactions, found.catalog.frame
    known = [
        frame.astype(object).where(frame.notna(), None).to_numpy().tolist(),
        found.catalog.ids.texts,
        [report.lines() for report in found.reports],
        [report.columns for report in found.reports],
    ]
    if log is not None:
        for name in ("users", "items", "ratings", "times", "weights"):
            column = getattr(log, name)
            known.append(None if column is None else np.asarray(column).tolist())
        known += [log.user_ids.texts, log.item_ids.texts, log.scale, log.times_comparable]
    return repr(known)


@pytest.fixture
def in_pieces():
    """A context in which rows are read and worked on a few at a time, and arrays are in files."""

    @contextmanager
    def few(rows):
        before = scratch.ROWS_AT_ONCE, scratch.LARGE
        scratch.ROWS_AT_ONCE, scratch.LARGE = rows, min(before[1], 40 * rows)
        try:
            yield
        finally:
            scratch.ROWS_AT_ONCE, scratch.LARGE = before

    return few


def check_in_pieces(folder, in_pieces, seeds, sizes):
    """Each log as a file of each kind, and how many could be read."""
    pytest.importorskip("pyarrow")
    n_read = 0
    for seed in seeds:
        table = messy_log(seed)
        sources = [folder / "log.csv", folder / "log.parquet", folder / "log.jsonl", table]
        table.to_csv(sources[0], index=False)
        as_numbers(table, seed).to_parquet(sources[1])
        table.to_json(sources[2], orient="records", lines=True)
        settings = (None, Columns(fold_ids=True)), (ITEMS, Columns(rating_scale=(1, 5)))
        if "rating" not in table:
            settings = *settings[:1], (ITEMS, Columns())
        asked = [(items, source, columns) for items, columns in settings for source in sources]
        with in_pieces(1 << 18):
            wholes = [state(read_dataset, *each) for each in asked]
        for rows in sizes:
            with in_pieces(rows):
                for each, whole in zip(asked, wholes, strict=True):
                    assert state(read_dataset, *each) == whole, (seed, rows, each[1])
        n_read += sum(whole.startswith("[") for whole in wholes)
    return n_read


@pytest.mark.slow
def test_a_log_in_pieces_is_the_log_as_a_whole(tmp_path, in_pieces):
    assert check_in_pieces(tmp_path, in_pieces, range(3), [5])


@pytest.mark.slow
def test_fifty_logs_in_pieces_are_the_logs_as_a_whole(tmp_path, in_pieces):
    assert check_in_pieces(tmp_path, in_pieces, range(3, 53), [1, 7]) > 100


def as_numbers(table, seed):
    """Columns of numbers and of dates as such, as a Parquet file has them."""
    rng, typed = random.Random(seed), table.copy()
    for name in typed:
        numbers, filled = pd.to_numeric(typed[name], errors="coerce"), typed[name].notna()
        if (numbers.notna() == filled).all() and np.isfinite(numbers[filled]).all():
            whole = filled.all() and not (numbers % 1).any()
            narrow = whole and numbers.abs().max() < 2e9 and rng.random() < 0.5
            typed[name] = numbers.astype("int32" if narrow else "int64" if whole else "float64")
        elif name == "time":
            dates = pd.to_datetime(typed[name], errors="coerce", format="%Y-%m-%d")
            typed[name] = dates.dt.as_unit(rng.choice(["s", "us", "ns"]))
    return typed


def test_what_parquet_holds_as_numbers_is_what_its_texts_are(tmp_path, in_pieces):
    """Numbers and moments are read without their texts, to the same interactions."""
    pytest.importorskip("pyarrow")
    n_read = 0
    for seed in range(8):
        table = as_numbers(messy_log(seed), seed)
        table.to_parquet(tmp_path / "log.parquet")
        as_text(table).to_csv(tmp_path / "log.csv", index=False)
        with in_pieces(5):
            found = state(read_dataset, ITEMS, tmp_path / "log.parquet")
        text = state(read_dataset, ITEMS, tmp_path / "log.csv").replace("log.csv", "log.parquet")
        # Rows of a text file are counted with its header.
        assert without_rows(found) == without_rows(text), seed
        n_read += found.startswith("[")
    assert n_read


def without_rows(said):
    return re.sub(r"row \d+", "row", said)


def test_messy_tables_in_pieces_are_the_tables_as_a_whole(tmp_path, in_pieces):
    pytest.importorskip("openpyxl")
    paths, wholes = [], []
    for seed in range(0, 60, 6):
        name, content = messy_table(seed)
        paths.append(tmp_path / f"{seed}-{name}")
        paths[-1].write_bytes(content)
        wholes.append(state(read_source, paths[-1]))
    with in_pieces(4):
        for path, whole in zip(paths, wholes, strict=True):
            assert state(read_source, path) == whole, path.name
    assert any(whole.startswith("[") for whole in wholes)


def test_lines_that_are_too_long_are_counted_by_their_numbers_in_any_piece(tmp_path, in_pieces):
    lines = ["user,item"] + [f"u{k},i{k}" + ",x,y" * (k % 5 == 3) for k in range(23)]
    lines.insert(9, "")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    whole, report = read_table(tmp_path / "log.csv")
    for rows in (1, 2, 3, 10):
        with in_pieces(rows):
            frame, again = read_table(tmp_path / "log.csv")
        pd.testing.assert_frame_equal(frame, whole)
        assert (str(again), again.first_rows) == (str(report), report.first_rows)
    assert report.first_rows == {"with too many columns": 5}


def test_a_log_of_long_cells_is_read_by_bytes(tmp_path, monkeypatch):
    from qkvsearch.tables.files import delimited

    lines = [f"u{k},i{k},{'x' * (1_000 if k > 50 else 1)}" for k in range(100)]
    lines[80] += ",y,z"
    (tmp_path / "log.csv").write_text("\n".join(["user,item,note", *lines]))
    whole, report = read_table(tmp_path / "log.csv")
    sizes = []
    add = TableBuilder.add
    monkeypatch.setattr(TableBuilder, "add", lambda t, f: sizes.append(len(f)) or add(t, f))
    monkeypatch.setattr(delimited, "BLOCK", 5_000)
    table, again = read_encoded(tmp_path / "log.csv")
    pd.testing.assert_frame_equal(table.frame(), whole, check_dtype=False)
    assert (str(again), again.first_rows) == (str(report), report.first_rows)
    assert max(sizes[1:]) < 10


numbers_or_words = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1).map(str), st.sampled_from(["1", "2", "007", "x"])
)


@given(st.lists(st.lists(numbers_or_words, max_size=5), max_size=5), st.booleans())
def test_an_encoded_column_gives_back_its_cells(pieces, are_small):
    if are_small:
        pieces = [[(cell or "")[:3].rstrip("-") or None for cell in piece] for piece in pieces]
    encoder, cells, place = TableBuilder(), [], 1
    for piece in pieces:
        frame = pd.DataFrame({"a": pd.Series(piece, dtype=object)})
        encoder.add(frame.set_axis(range(place, place + len(piece))))
        place += len(piece) + 1
        cells += piece
    table = encoder.table()
    if not pieces:
        return
    found = table.frame()["a"]
    assert [None if pd.isna(cell) else cell for cell in found] == cells
    codes, texts = table.columns["a"].coded()
    assert [texts[code] if code >= 0 else None for code in codes] == cells
    assert texts.is_unique
    assert table.columns["a"].n_filled == sum(cell is not None for cell in cells)


def test_whole_numbers_take_four_bytes_until_one_is_longer_and_words_make_all_of_them_text():
    kinds = []
    encoder = TableBuilder()
    for place, cell in enumerate([None, "5", "5000000000", "x", "6"]):
        encoder.add(pd.DataFrame({"a": [cell]}, index=[place], dtype=object))
        column = encoder.encoder("a")
        kinds.append("text" if column._codes else column._numbers and column._numbers.dtype.name)
    assert kinds == [None, "int32", "int64", "text", "text"]
    column = encoder.table().columns["a"]
    assert isinstance(column, TextColumn)
    assert column.texts(slice(1, 5)).tolist() == ["5", "5000000000", "x", "6"]


def test_long_numbers_beside_gaps_stay_exact(tmp_path):
    """As floats, 2**53 + 1 would be another user."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"user": pa.array([2**53, 2**53 + 1, None]), "item": [1, 1, 1]})
    pq.write_table(table, tmp_path / "log.parquet")
    log = read_dataset(None, tmp_path / "log.parquet").interactions
    assert list(log.user_ids) == [2**53, 2**53 + 1]
    assert read_table(tmp_path / "log.parquet")[0]["user"].tolist()[:2] == [
        str(2**53), str(2**53 + 1),
    ]  # fmt: skip


def test_parquet_of_all_kinds_is_read_as_its_frame_is(tmp_path, in_pieces):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "int8": pa.array([1, None, 3, 1], pa.int8()),
            "uint64": pa.array([2**64 - 1, 0, 7, 5], pa.uint64()),
            "float": pa.array([1.5, 2.0, None, float("nan")]),
            "float32": pa.array([0.5, 2.0, None, 3.25], pa.float32()),
            "text": ["a", "", None, "a"],
            "flag": [True, None, False, True],
            "day": pa.array([0, 1, None, 19000], pa.date32()),
            "moment": pa.array([0, 1, None, 10**15], pa.timestamp("us", "Asia/Tokyo")),
            "list": [["a", "b"], [], None, ["a"]],
            "struct": [{"a": 1}, {"a": 3}, {"a": 2}, {"a": 1}],
            "words": pa.array(["x", "y", None, "x"]).dictionary_encode(),
            "nothing": pa.nulls(4),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    expected = as_text(pd.read_parquet(tmp_path / "t.parquet")).set_axis(range(1, 5))
    for rows in (1, 3, 100):
        with in_pieces(rows):
            encoded_one, report = read_encoded(tmp_path / "t.parquet")
            found = encoded_one.frame()
        for name in expected:
            assert found[name].fillna("").tolist() == expected[name].fillna("").tolist(), name
        assert report.read == 4
    assert isinstance(encoded_one.columns["moment"], NumberColumn)


def test_of_rows_that_are_alike_the_last_is_kept(in_pieces):
    frame = pd.DataFrame({"a": list("xyxzx"), "b": ["1", None, "1", "1", "2"], "c": list("12345")})
    for rows in (1, 2, 9):
        with in_pieces(rows):
            found = different_rows(table_of(frame.set_axis(range(1, 6))), ["a", "b"])
        assert found.index.tolist() == [2, 3, 4, 5]
        assert found["a"].tolist() == ["y", "x", "z", "x"]


def test_a_log_of_too_many_rows_is_refused(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("user,item\n" + "1,2\n" * 5)
    monkeypatch.setenv("QKVSEARCH_MAX_LOG_ROWS", "4")
    with pytest.raises(DataError, match=r"more than 4 rows of interactions.*MAX_LOG_ROWS=N"):
        read_dataset(None, tmp_path / "log.csv")
