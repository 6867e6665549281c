"""A long table written part by part beside its file, so that an interrupted run goes on."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from qkvsearch.errors import QkvError

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

COLUMNS = ("user", "rank", "id", "title", "score")
FORMATS = ("parquet", "csv", "jsonl")
STATE = "state.json"


def check_format(path: Path, form: str | None) -> str:
    """ "parquet", "csv" or "jsonl", as told or by the file's name. Raises `QkvError`."""
    found = form or path.suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {found!r}")
    if found == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise QkvError(
                f"{path}: writing Parquet needs pyarrow: pip install 'qkvsearch[parquet]'"
            ) from None
    return found


class Export:
    """Parts in `<path>.parts/`, which `finish` makes one file of and removes.

    integer: which of the id columns hold whole numbers. state: what the parts depend on; those of
    another state are removed. Each part, and at last the file, gets its name when it is whole.
    """

    def __init__(
        self, path: Path, form: str | None, integer: Mapping[str, bool], state: str
    ) -> None:
        self.path, self.form, self.integer = path, check_format(path, form), integer
        if path.is_dir() or not path.parent.is_dir():
            raise QkvError(f"{path}: is a folder, or is to be in one that is not there")
        self.folder = path.with_name(f"{path.name}.parts")
        whole = json.dumps({"state": state, "format": self.form})
        known = self.folder / STATE
        if self.folder.exists() and not known.is_file() and any(self.folder.iterdir()):
            raise QkvError(
                f"{self.folder}: in the way, and not ours; move it, or name another file"
            )
        if not known.is_file() or known.read_text(encoding="utf-8") != whole:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            known.write_text(whole, encoding="utf-8")

    def has(self, number: int) -> bool:
        return self._part(number).is_file()

    def add(self, number: int, table: Table) -> None:
        """One more part, on disk when this returns."""
        unfinished = self.folder / f"unfinished-{os.getpid()}"
        if self.form == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(self._arrow(table), unfinished)
        else:
            unfinished.write_text(_lines(table, self.form), encoding="utf-8")
        unfinished.replace(self._part(number))

    def finish(self, count: int) -> None:
        """The parts 0 to `count` − 1 as one file."""
        whole = self.folder / f"whole-{os.getpid()}"
        parts = [self._part(number) for number in range(count)]
        if self.form == "parquet":
            import pyarrow.parquet as pq

            schema = self._arrow({name: [] for name in COLUMNS}).schema
            with pq.ParquetWriter(whole, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part))
        else:
            with whole.open("wb") as file:
                if self.form == "csv":
                    file.write(f"{','.join(COLUMNS)}\n".encode())
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, file)
        whole.replace(self.path)
        with suppress(OSError):
            shutil.rmtree(self.folder)

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def _arrow(self, table: Table) -> Any:
        import pyarrow as pa

        types = {"rank": pa.int32(), "title": pa.string(), "score": pa.float32()}
        types |= {
            name: pa.int64() if whole else pa.string() for name, whole in self.integer.items()
        }
        schema = pa.schema([(name, types[name]) for name in COLUMNS])
        return pa.table({name: pa.array(table[name], types[name]) for name in COLUMNS}, schema)


def _lines(table: Table, form: str) -> str:
    """The rows without a heading."""
    rows = zip(*(table[name] for name in COLUMNS), strict=True)
    if form == "jsonl":
        return "".join(
            json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) + "\n"
            for row in rows
        )
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
