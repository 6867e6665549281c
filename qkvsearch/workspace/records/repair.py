"""Damaged records repaired: signed again where every row is whole, else all rows that are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from qkvsearch.errors import DamagedError, quantity
from qkvsearch.workspace.records.database import NAME, NOTHING, RecordsDatabase
from qkvsearch.workspace.records.rows import (
    Record,
    Totals,
    create,
    insert,
    is_whole,
    set_last,
    totals,
)
from qkvsearch.workspace.records.salvage import rows_in


@dataclass(frozen=True)
class RecordsRepair:
    """What became of the records: how many there are, how many were lost (None: nobody can tell),
    and whether anything was written.
    """

    kept: int
    lost: int | None = 0
    changed: bool = True

    def __str__(self) -> str:
        if not self.changed:
            return f"{NAME}: {quantity(self.kept, 'record')}, as they were written"
        if self.lost == 0:
            return f"{NAME}: {quantity(self.kept, 'record')}, none lost; signed again"
        lost = "how many were lost cannot be told" if self.lost is None else f"{self.lost:,} lost"
        return f"{NAME}: {quantity(self.kept, 'record')} kept, {lost}"


def repair_records(workspace: Path) -> RecordsRepair:
    """Keep every record of a workspace whose checksum is right. Raises `WorkspaceError` where
    nothing can be written.
    """
    database = RecordsDatabase.of(workspace)
    if not database.signature.exists() and not os.path.lexists(database.path):
        return RecordsRepair(0, changed=False)
    with database.alone("repair"):
        try:
            return _as_signed(database)
        except (DamagedError, sqlite3.Error):
            pass
        try:
            with closing(database.connect(database.path)) as db:
                database.require_whole(db)
                n = totals(db).n
        except (DamagedError, sqlite3.Error, TypeError):
            return _salvaged(database)
        database.sign()
        return RecordsRepair(n)


def _as_signed(database: RecordsDatabase) -> RecordsRepair:
    """Nothing is wrong, or a writer was killed. Raises `DamagedError`."""
    is_clean = database.signed()["state"] == "clean"
    if database.require_sound() == NOTHING:
        n = 0
    else:
        with closing(database.connect(database.path)) as db:
            database.require_whole(db)
            n = totals(db).n
    if not is_clean:
        database.sign()
    return RecordsRepair(n, changed=not is_clean)


def _salvaged(database: RecordsDatabase) -> RecordsRepair:
    """The rows that are whole, in a new file in the place of the damaged one."""
    records, counted = _whole_rows(_restored_bytes(database))
    number, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=database.path.parent)
    os.close(number)
    try:
        with closing(database.connect(Path(name))) as db:
            db.execute("BEGIN")
            create(db)
            insert(db, (records[number] for number in sorted(records)))
            set_last(db, max([0, *(each.last for each in counted)]))
            db.execute("COMMIT")
        database.write_state("writing", NOTHING)
        database.journal.unlink(missing_ok=True)  # or SQLite would play it into the new file
        os.replace(name, database.path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    database.sign()
    lost = counted[0].n - len(records) if len(counted) == 1 else None
    return RecordsRepair(len(records), lost)


def _whole_rows(data: bytes) -> tuple[dict[int, Record], list[Totals]]:
    """What the pages of a database hold of both tables, as far as checksums are right."""
    records, counted = {}, []
    for row in rows_in(data):
        if len(row) == 9:
            # SQLite keeps a column of real numbers as whole ones where they are.
            reals = (float(cell) if isinstance(cell, int) else cell for cell in row[4:6])
            row = (*row[:4], *reals, *row[6:])
            if is_whole(row):
                records[row[0]] = Record(*row[:2], *row[3:-1])
        elif len(row) == 4 and is_whole(row):
            counted.append(Totals(*row[:-1]))
    return records, counted


def _restored_bytes(database: RecordsDatabase) -> bytes:
    """Of the file as a journal beside it restores it, where SQLite can still do that."""
    try:
        if not database.size():
            return b""
    except DamagedError:
        return b""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / NAME
        shutil.copyfile(database.path, copy)
        if database.journal.exists():
            shutil.copyfile(database.journal, copy.with_name(database.journal.name))
            with suppress(sqlite3.Error), closing(sqlite3.connect(copy)) as db:
                db.execute("SELECT count(*) FROM sqlite_master")
        return copy.read_bytes()
