"""Table files to frames of text: CSV, TSV, JSON Lines and Parquet, in any encoding."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need

DELIMITERS = ",\t;|"
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
# More characters than a book has. A longer cell is the rest of a file after a stray quote.
MAX_CELL = 10_000_000


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
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError as error:
        raise DataError(f"{path}: cannot read: {error.strerror}") from None
    _refuse_what_is_no_table(path, start)
    if path.suffix.lower() == ".parquet":
        frame, report = _read_parquet(path)
        return _without_giants(frame, report), report
    text, damaged = _open_text(path, encoding)
    with text:
        if path.suffix.lower() in JSON_SUFFIXES:
            frame, report = _read_json_lines(path, text)
        else:
            frame, report = _read_delimited(path, text, delimiter, names)
    report.repaired = damaged
    if path.stat().st_size > MAX_CELL:
        frame = _without_giants(frame, report)
    return frame, report


def _refuse_what_is_no_table(path: Path, start: bytes) -> None:
    if not start:
        raise DataError(f"{path}: the file is empty")
    if start.startswith(b"\x1f\x8b"):
        raise DataError(f"{path}: compressed; unpack it first with gunzip")
    if start.startswith(b"PK\x03\x04"):
        raise DataError(f"{path}: a zip archive or a spreadsheet; unpack it, or export it as CSV")


def _without_giants(frame: pd.DataFrame, report: ReadReport) -> pd.DataFrame:
    giant = pd.Series(False, index=frame.index)
    for name in frame:
        giant |= frame[name].str.len() > MAX_CELL
    report.skip(f"with a cell of more than {MAX_CELL:,} characters", int(giant.sum()))
    return frame[~giant].reset_index(drop=True)


def _open_text(path: Path, encoding: str | None) -> tuple[io.TextIOBase, int]:
    """The decoded text, and how many lines were not valid in the file's main encoding.

    Tools export UTF-8, UTF-16 with a mark, or the Windows code page. Files joined from several
    exports mix them, so each line that is not UTF-8 is read as Windows-1252.
    """
    if encoding is not None:
        return path.open(encoding=encoding, errors="replace", newline=""), 0
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return path.open(encoding="utf-16", errors="replace", newline=""), 0
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
    path: Path, text: io.TextIOBase, delimiter: str | None, names: Sequence[str] | None
) -> tuple[pd.DataFrame, ReadReport]:
    if delimiter is None:
        delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else _guess_delimiter(text)
    quoted = names is None and not (delimiter == "\t" and _quotes_are_text(text))
    # pandas accepts a first row of any length, so the header is read as a row. One column more
    # than the header has shows which rows are too long.
    width = len(names) if names else _header_width(path, text, delimiter)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                text,
                sep=re.escape(delimiter) if len(delimiter) > 1 else delimiter,
                engine="python" if len(delimiter) > 1 else "c",
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                header=None,
                names=range(width + 1),
                index_col=False,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                on_bad_lines="warn",
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise DataError(f"{path}: not a table: {_in_words(error)}".rstrip()) from None
    if names is None:
        names, frame = _distinct(frame.iloc[0, :width]), frame.iloc[1:]
    bad_lines = re.findall(r"Skipping line (\d+)", " ".join(str(w.message) for w in caught))
    report = ReadReport(path.name, read=len(frame) + len(bad_lines))
    frame = frame[frame[width].isna()].drop(columns=width).reset_index(drop=True)
    report.skip("with too many columns", report.read - len(frame))
    return frame.set_axis(list(names), axis=1), report


def _in_words(error: Exception) -> str:
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if unclosed is None:
        return str(error)
    return (
        f"row {int(unclosed[1]) + 1}, the header counted, opens a quote that is never closed; "
        'close it, or write "" for a quote that belongs to the text'
    )


def _quotes_are_text(text: io.TextIOBase) -> bool:
    """True where tabs alone make every line a row, and a cell opens a quote that is not closed in
    its line: read as quotes, they would join lines.
    """
    rows = [line.rstrip("\r\n").split("\t") for line in text if line.strip()]
    text.seek(0)
    if len({len(row) for row in rows}) > 1:
        return False
    opened = (cell for row in rows for cell in row if cell.startswith('"'))
    return any(len(cell) == 1 or not cell.endswith('"') for cell in opened)


def _header_width(path: Path, text: io.TextIOBase, delimiter: str) -> int:
    rows = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    try:
        width = next(len(row) for row in rows if len(row) > 1 or "".join(row).strip())
    except StopIteration:
        raise DataError(f"{path}: not a table: no line has anything in it") from None
    except csv.Error as error:
        raise DataError(
            f"{path}: not a table: the first line has to name the columns ({error})"
        ) from None
    text.seek(0)
    return width


def _guess_delimiter(text: io.TextIOBase) -> str:
    """The delimiter that splits the header into the most columns."""
    header = re.sub(r'"[^"]*"', "", next((line for line in text if line.strip()), ""))
    text.seek(0)
    return max(DELIMITERS, key=header.count)


def _read_json_lines(path: Path, text: io.TextIOBase) -> tuple[pd.DataFrame, ReadReport]:
    rows = list(_json_rows(path, text))
    # As objects: a gap would turn a column into floats, which cannot hold long numbers exactly.
    return as_text(pd.DataFrame(rows, dtype=object)), ReadReport(path.name, read=len(rows))


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
    need("pyarrow", "parquet", f"{path}: reading Parquet", error=DataError)
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file: {error}") from None
    return as_text(frame), ReadReport(path.name, read=len(frame))


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in memory, in the form of one read from a file: columns of text, blanks missing."""
    frame = frame.set_axis(_distinct(frame.columns), axis=1).reset_index(drop=True)
    texts = frame.astype(object).map(_cell).astype(str)
    return texts.where(frame.notna() & (texts != ""))


def _distinct(names: Iterable[Any]) -> list[str]:
    """Names without spaces around them; repeated ones get a number: tag, tag.1."""
    distinct: list[str] = []
    for place, name in enumerate(names):
        text = "" if name is None or name != name else str(name).strip()
        text, number = text or f"Unnamed: {place}", 0
        new = text
        while new in distinct:
            number += 1
            new = f"{text}.{number}"
        distinct.append(new)
    return distinct


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # half an emoji cannot be stored
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if hasattr(value, "__iter__"):
        return "|".join(str(part) for part in value)
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
