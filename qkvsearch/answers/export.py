"""A long table written part by part beside its file, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from qkvsearch.data.writers import require_pyarrow, to_csv, to_jsonl
from qkvsearch.errors import QkvError
from qkvsearch.files import replace_synced

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

COLUMNS = ("user", "rank", "id", "title", "score")
FORMATS = ("parquet", "csv", "jsonl")
# What a state is called: the first digits of its SHA-256.
STATE = re.compile("[0-9a-f]{16}")
# Parts of another state to which nothing was added for so long are of no run that is at work.
STALE_SECONDS = 24 * 3600


def check_format(path: Path, form: str | None) -> str:
    """ "parquet", "csv" or "jsonl", as told or by the file's name. Raises `QkvError`."""
    found = form or path.suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {found!r}")
    if found == "parquet":
        require_pyarrow(path)
    return found


class Export:
    """Parts in `<path>.parts/`, which `finish` makes one file of and removes.

    integer: which of the id columns hold whole numbers. state: what the parts depend on; each has a
    folder of its own, so that two runs with other options do not mix. Each part, and at last the
    file, gets its name when it is whole and on disk.
    """

    def __init__(
        self, path: Path, form: str | None, integer: Mapping[str, bool], state: str
    ) -> None:
        self.path, self.form, self.integer = path, check_format(path, form), integer
        if path.is_dir() or not path.parent.is_dir():
            raise QkvError(f"{path}: is a folder, or is to be in one that is not there")
        self.all_parts = path.with_name(f"{path.name}.parts")
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
        """One more part. Raises `QkvError` where another run with these options has finished."""
        self._require_folder()
        unfinished = self.folder / f"unfinished-{os.getpid()}"
        if self.form == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(self._arrow(table), unfinished)
        else:
            unfinished.write_bytes(_lines(table, self.form).encode())
        replace_synced(unfinished, self._part(number))

    def finish(self, count: int) -> None:
        """The parts 0 to `count` − 1 as one file. Raises `QkvError` as `add` does."""
        self._require_folder()
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
        replace_synced(whole, self.path)
        self._tidy()

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            raise QkvError(f"{self.path}: another run with the same options has written it")

    def _tidy(self) -> None:
        """Remove our parts, and those of other options that nobody goes on with."""
        for folder in self.all_parts.iterdir():
            with suppress(OSError):
                if folder == self.folder or time.time() - folder.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(folder)
        with suppress(OSError):  # another run may be at work
            self.all_parts.rmdir()

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
        return to_jsonl(dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return to_csv(rows)
