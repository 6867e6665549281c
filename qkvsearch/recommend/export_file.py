"""A file of recommendations, written in parts, so that an interrupted run can resume."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from qkvsearch._utils.files import is_on_disk, replacing
from qkvsearch.data.ids import id_text
from qkvsearch.data.writers import CsvLines, require_pyarrow, said_of_guarded, to_jsonl
from qkvsearch.errors import QkvError

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

FORMATS = ("parquet", "csv", "jsonl")
MIXED_USERS = "The user column is text, because some recorded ids are not whole numbers."
# The folder of a state is named by the first digits of its SHA-256.
STATE = re.compile("[0-9a-f]{16}")
# Parts of another state that did not grow for so long belong to no running process.
STALE_SECONDS = 24 * 3600


def check_format(path: Path, form: str | None) -> str:
    """Return "parquet", "csv" or "jsonl", as given or by the file's name. Raises `QkvError`."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {form!r}")
    if form == "parquet":
        require_pyarrow(path)
    return form


class ExportFile:
    """A file that is written in parts in `<path>.parts/`, which `finish` joins and removes.

    types: of the columns, in SQL. state: what the parts depend on; each state has its own folder,
    so that runs with different options do not mix. Each part, and finally the file, gets its name
    when it is complete and on disk.
    """

    def __init__(
        self, path: Path, form: str | None, types: Mapping[str, str], state: str, raw: bool = False
    ) -> None:
        self.path, self.form, self.types = path, check_format(path, form), types
        self._csv = CsvLines(list(types), raw)
        if path.is_dir() or not path.parent.is_dir():
            raise QkvError(f"{path}: is a folder, or its folder does not exist")
        self.all_parts = path.with_name(f"{path.name}.parts")
        if not is_on_disk(path):  # a pipe or a terminal, with no folder beside it
            self.all_parts = Path(tempfile.mkdtemp(prefix="qkvsearch-"))
        digest = hashlib.sha256(f"{self.form} {state}".encode()).hexdigest()
        self.folder = self.all_parts / digest[:16]
        if self.all_parts.exists() and not self._is_ours():
            raise QkvError(
                f"{self.all_parts}: in the way, and not ours; move it, or name another file"
            )
        self.folder.mkdir(parents=True, exist_ok=True)

    def _is_ours(self) -> bool:
        return self.all_parts.is_dir() and all(
            STATE.fullmatch(folder.name) for folder in self.all_parts.iterdir()
        )

    def has(self, number: int) -> bool:
        return self._part(number).is_file()

    def add(self, number: int, table: Table) -> None:
        """Write one more part. Raises `QkvError` where another run with these options finished."""
        self._require_folder()
        with replacing(self._part(number)) as file:
            if self.form == "parquet":
                import pyarrow.parquet as pq

                pq.write_table(arrow_table(table, self.types), file)
            else:
                file.write(self._lines(table).encode())

    def finish(self, count: int) -> None:
        """Join the parts 0 to `count` − 1 to one file. Raises `QkvError` as `add` does."""
        self._require_folder()
        parts = [self._part(number) for number in range(count)]
        if self.form == "parquet":
            import pyarrow.parquet as pq

            schema = arrow_schema(self.types)
            with replacing(self.path) as file, pq.ParquetWriter(file, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part))
        else:
            with replacing(self.path) as file:
                if self.form == "csv":
                    file.write(self._csv.heading().encode())
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, file)
        self._tidy()

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            raise QkvError(f"{self.path}: another run with the same options has written it")

    def _tidy(self) -> None:
        """Remove the parts, and stale parts of other options."""
        for folder in self.all_parts.iterdir():
            with suppress(OSError):
                if folder == self.folder or time.time() - folder.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(folder)
        with suppress(OSError):  # another run may be at work
            self.all_parts.rmdir()

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def notes(self, mixed_users: bool) -> list[str]:
        """Return what a reader of the file should know."""
        notes = []
        if mixed_users and self.form == "parquet":
            notes.append(MIXED_USERS)
        if guarded := said_of_guarded(self._csv.guarded):
            notes.append(f"{guarded}; `raw` writes all cells as they are, for programs.")
        return notes

    def _lines(self, table: Table) -> str:
        """Return the rows without a heading."""
        rows = zip(*(table[name] for name in self.types), strict=True)
        if self.form == "jsonl":
            return to_jsonl(dict(zip(self.types, row, strict=True)) for row in rows)
        return self._csv.text(rows)


def arrow_schema(sql_types: Mapping[str, str]) -> Any:
    """Return the Arrow types of columns with these types in SQL."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    types = {name: kinds[kind] for name, kind in sql_types.items()}
    return pa.schema(list((types | {"rank": pa.int32(), "score": pa.float32()}).items()))


def arrow_table(table: Table, sql_types: Mapping[str, str]) -> Any:
    """Return columns with these types in SQL as an Arrow table."""
    import pyarrow as pa

    columns = dict(table)
    for name, kind in sql_types.items():
        if kind == "TEXT":  # ids of users may be numbers and texts
            columns[name] = [None if cell is None else id_text(cell) for cell in table[name]]
    return pa.table(columns, arrow_schema(sql_types))
