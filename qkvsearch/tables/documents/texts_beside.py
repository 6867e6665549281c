"""Texts of files beside a table of items: `talks.csv` with `talks/{id}.vtt`."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch.errors import DataError, listed_names, quantity
from qkvsearch.tables.columns import Columns, check_column, require_column
from qkvsearch.tables.documents.document_files import format_of
from qkvsearch.tables.documents.reading import (
    TEXT,
    TIMES,
    DocumentReader,
    cells_of,
    require_libraries,
)
from qkvsearch.tables.frames import as_text
from qkvsearch.tables.ids import id_texts
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import Table, table_of

# The place of a cell in a pattern: {id}, or the name of another column.
PLACE = re.compile(r"\{([^{}]+)\}")


def with_texts(table: Table, columns: Columns, report: ReadReport) -> Table:
    """Return a table with the texts of the files that `columns.texts` means for each row.

    A row without a file stays. Raises `DataError` where no row has one.
    """
    frame = table.frame()
    files = _files_of_rows(frame, columns, report)
    found = {path for path in files if path is not None}
    require_libraries(found)
    reader = DocumentReader(columns.encoding)
    documents = {path: reader.read(path) for path in sorted(found)}
    if len(reader.failed) == len(documents):
        raise DataError(f"{columns.texts}: no file can be read: {'; '.join(reader.failed[:3])}")
    frame = _without_own_texts(frame, report)
    names = {name.casefold() for name in frame}
    rows = []
    for path in files:
        document = None if path is None else documents[path]
        cells: dict[str, Any] = {}
        if document is not None:
            # What the table says counts; the front matter adds what it does not say.
            for key, value in document.columns.items():
                if key.casefold() not in names:
                    cells[key] = value
            cells |= cells_of(document)
        rows.append(cells)
    keys = dict.fromkeys(key for row in rows for key in row if key not in (TEXT, TIMES))
    added = pd.DataFrame(rows, frame.index, dtype=object).reindex(columns=[*keys, TEXT, TIMES])
    if added[TIMES].isna().all():
        added = added.drop(columns=TIMES)
    texts = as_text(added, report).set_axis(frame.index)
    reader.report(report)
    report.types[TEXT] = "text"
    report.of_texts = list(texts)
    return table_of(pd.concat([frame, texts], axis=1))


def _files_of_rows(frame: pd.DataFrame, columns: Columns, report: ReadReport) -> list[Path | None]:
    """Return the file of each row, None where there is none, and report those without."""
    pattern = str(columns.texts)
    cells = _cells_of_places(frame, columns, report.file)
    files = [_file(pattern, row) for row in cells]
    missing = [number for number, path in enumerate(files) if path is None]
    if len(missing) == len(files):
        reasons = f": {_reasons(pattern, cells)}" if cells else ""
        raise DataError(f"{pattern}: no row has such a file (`texts`){reasons}")
    if missing:
        reasons = _reasons(pattern, [cells[number] for number in missing])
        report.notes.append(f"{quantity(len(missing), 'row')} without a text: {reasons}")
    # What has no item is told, since a pattern may miss most of a folder.
    used = {str(path) for path in files if path is not None}
    every = glob.glob("*".join(map(glob.escape, PLACE.sub("\0", pattern).split("\0"))))
    unused = [name for name in sorted(every) if str(Path(name)) not in used]
    if unused:
        report.notes.append(f"{quantity(len(unused), 'file')} of no row: {listed_names(unused, 3)}")
    return files


def _cells_of_places(frame: pd.DataFrame, columns: Columns, file: str) -> list[Mapping[str, str]]:
    """Return, for each row, the text at each place of the pattern."""
    pattern = str(columns.texts)
    places = list(dict.fromkeys(PLACE.findall(pattern)))
    if not places:
        raise DataError(
            f"`texts` {pattern!r}: write {{id}} where the id stands: 'talks/{{id}}.vtt'"
        )
    texts = {}
    for place in places:
        names = list(frame.columns)
        if place == "id":
            column = require_column("id", columns.id, names, file)
            texts[place] = id_texts(frame[column])
        else:
            column = check_column(place, names, file, "`texts`")
            texts[place] = frame[column].fillna("").astype(str)
    return pd.DataFrame(texts).to_dict("records")


def _filled(pattern: str, cells: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: cells[place[1]], pattern)


def _reasons(pattern: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Return why rows have no text: files that are not there or not in the folder, empty cells."""
    n_empty: Counter[str] = Counter()
    absent: dict[str, None] = {}
    outside: dict[str, None] = {}
    for cells in rows:
        empty = [name for name, cell in cells.items() if not cell]
        if empty:
            n_empty[empty[0]] += 1
        elif any(map(_leads_out, cells.values())):
            outside[_filled(pattern, cells)] = None
        else:
            absent[_filled(pattern, cells)] = None
    reasons = [f"no {listed_names(list(absent), 3)}"] if absent else []
    reasons += [f"{count:,} with no {name!r}" for name, count in n_empty.items()]
    if outside:
        reasons.append(f"not read, being outside the folder: {listed_names(list(outside), 3)}")
    return ", ".join(reasons)


def _leads_out(cell: str) -> bool:
    return ".." in Path(cell).parts or Path(cell).is_absolute()


def _file(pattern: str, cells: Mapping[str, str]) -> Path | None:
    """Return the file of a row, or None. A cell cannot lead out of the folder."""
    if any(not cell or _leads_out(cell) for cell in cells.values()):
        return None
    path = Path(_filled(pattern, cells))
    try:
        if path.is_file():
            return path
    except (OSError, ValueError):  # a name too long for a file
        return None
    return next(_matching(pattern, cells), None)


def _matching(pattern: str, cells: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of a row where the pattern has `*` or `?` beside its places."""
    if not re.search(r"[*?]", pattern):
        return
    escaped = {name: glob.escape(cell) for name, cell in cells.items()}
    for name in sorted(glob.glob(_filled(pattern, escaped), recursive=True)):
        if Path(name).is_file() and format_of(Path(name)) is not None:
            yield Path(name)


def _without_own_texts(frame: pd.DataFrame, report: ReadReport) -> pd.DataFrame:
    """Return a table whose own columns of that name, if any, do not stand in the texts' place."""
    own = [name for name in (TEXT, TIMES) if name in frame]
    for name in own:
        report.notes.append(
            f"column {name} of the table is {name}.1, beside the texts of the files"
        )
    return frame.rename(columns={name: f"{name}.1" for name in own})
