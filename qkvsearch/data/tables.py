"""Any table file into a frame of text: CSV, TSV, JSON Lines, Parquet, in whatever encoding."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

DELIMITERS = ",\t;|"
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
) -> tuple[pd.DataFrame, ReadReport]:
    """All columns as text, so that the id 007 stays 007; blank cells are missing.

    `delimiter` and `encoding` are guessed where not given; `names` are the columns of a file
    without a header. Lists inside cells become `a|b|c`. Raises `DataError` naming the file where
    it is missing, empty or not a table.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    text, damaged = _open_text(path, encoding)
    with text:
        if path.suffix in JSON_SUFFIXES:
            frame, report = _read_json_lines(path, text)
        else:
            frame, report = _read_delimited(path, text, delimiter, names)
    report.repaired = damaged
    return frame, report


def _open_text(path: Path, encoding: str | None) -> tuple[io.TextIOBase, int]:
    """The decoded text and how many of its lines were not valid in the file's own encoding.

    Tools export UTF-8, UTF-16 with a mark, or the Windows code page; files glued together from
    several exports mix them, so a line that is not UTF-8 is read as Windows-1252 on its own.
    """
    if encoding is not None:
        return path.open(encoding=encoding, errors="replace", newline=""), 0
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return path.open(encoding="utf-16", newline=""), 0
    try:
        with path.open(encoding="utf-8") as file_text:
            while file_text.read(1 << 20):
                pass
        return path.open(encoding="utf-8-sig", newline=""), 0
    except UnicodeDecodeError:
        lines: list[str] = []
        damaged = 0
        for line in path.read_bytes().split(b"\n"):
            try:
                lines.append(line.decode("utf-8-sig" if not lines else "utf-8"))
            except UnicodeDecodeError:
                damaged += 1
                lines.append(line.decode("cp1252", errors="replace"))
        return io.StringIO("\n".join(lines), newline=""), damaged


def _read_delimited(
    path: Path,
    text: io.TextIOBase,
    delimiter: str | None,
    names: Sequence[str] | None,
) -> tuple[pd.DataFrame, ReadReport]:
    if delimiter is None:
        delimiter = "\t" if path.suffix in (".tsv", ".tab") else _guess_delimiter(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                text,
                sep=re.escape(delimiter) if len(delimiter) > 1 else delimiter,
                engine="python" if len(delimiter) > 1 else "c",
                quoting=csv.QUOTE_MINIMAL if names is None else csv.QUOTE_NONE,
                header=0 if names is None else None,
                names=names,
                index_col=False,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                on_bad_lines="warn",
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise DataError(f"{path}: not a table: {error}".rstrip()) from None
    frame.columns = frame.columns.map(lambda name: str(name).strip())
    bad_lines = re.findall(r"Skipping line (\d+)", " ".join(str(w.message) for w in caught))
    report = ReadReport(path.name, read=len(frame) + len(bad_lines))
    report.skip("with too many columns", len(bad_lines))
    return frame, report


def _guess_delimiter(text: io.TextIOBase) -> str:
    """The delimiter that splits the header into the most columns."""
    header = re.sub(r'"[^"]*"', "", text.readline())
    text.seek(0)
    return max(DELIMITERS, key=header.count)


def _read_json_lines(path: Path, text: io.TextIOBase) -> tuple[pd.DataFrame, ReadReport]:
    rows = list(_json_rows(path, text))
    frame = pd.DataFrame(rows)
    return frame.map(_cell).astype(str).where(frame.notna()), ReadReport(path.name, read=len(rows))


def _json_rows(path: Path, text: io.TextIOBase) -> Iterator[dict[str, Any]]:
    """One object a line, or one array of objects."""
    whole = text.read(1) == "["
    text.seek(0)
    for number, line in [(1, text.read())] if whole else enumerate(text, 1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON: {error}") from None
        for row in parsed if whole else [parsed]:
            if not isinstance(row, dict):
                raise DataError(f'{path}, line {number}: expected objects like {{"id": 7}}')
            yield row


def _read_parquet(path: Path) -> tuple[pd.DataFrame, ReadReport]:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise DataError(
            f"{path}: reading Parquet needs pyarrow: pip install 'qkvsearch[parquet]'"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file: {error}") from None
    return as_text(frame), ReadReport(path.name, read=len(frame))


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in memory made like one read from a file: named columns of text, blanks missing."""
    frame = frame.rename(columns=str).reset_index(drop=True)
    return frame.map(_cell).astype(str).where(frame.notna())


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if hasattr(value, "__iter__"):
        return "|".join(str(part) for part in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
