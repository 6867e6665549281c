"""Repair damaged records: keep the rows that SQLite can read and whose checksums are right."""

import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from qkvsearch.errors import DamagedError, quantity
from qkvsearch.store.records.database import RecordsDatabase
from qkvsearch.store.records.record_rows import (
    Record,
    Totals,
    create,
    insert,
    is_whole,
    set_last,
    totals,
)
from qkvsearch.store.records.records_file import NAME, NOTHING


@dataclass(frozen=True)
class RecordsRepair:
    """Result of a repair: records there are, records lost (None: not known), and any change."""

    kept: int
    lost: int | None = 0
    changed: bool = True

    def __str__(self) -> str:
        if not self.changed:
            return f"{NAME}: {quantity(self.kept, 'record')}, as they were written"
        if self.lost == 0:
            return f"{NAME}: {quantity(self.kept, 'record')}, none lost; checksum written again"
        lost = (
            "an unknown number of records" if self.lost is None else quantity(self.lost, "record")
        )
        return f"{lost} of {NAME}; {quantity(self.kept, 'record')} kept"


def repair_records(database: RecordsDatabase) -> RecordsRepair:
    """Keep every record that SQLite can read and whose checksum is right.

    Raises `BusyError` where another writer does not end within the time that the database waits,
    and `WorkspaceError` where nothing can be written.
    """
    if not database.state_file.exists() and not os.path.lexists(database.path):
        return RecordsRepair(0, changed=False)
    with database.alone("repair"):
        try:
            return _if_sound(database)
        except (DamagedError, sqlite3.Error):
            return _rewritten(database)


def _if_sound(database: RecordsDatabase) -> RecordsRepair:
    """Check records that are sound, or that a killed writer left. Raises `DamagedError`."""
    is_clean = database.read_state()["state"] == "clean"
    if database.require_sound() == NOTHING:
        n = 0
    else:
        with closing(database.connect(database.path)) as db:
            database.require_whole(db)
            n = totals(db).n
    if not is_clean:
        database.mark_clean()
    return RecordsRepair(n, changed=not is_clean)


def _rewritten(database: RecordsDatabase) -> RecordsRepair:
    """Write the rows that are whole to a new file in the place of the damaged one."""
    records, counted = _readable(database)
    number, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=database.path.parent)
    os.close(number)
    try:
        with closing(database.connect(Path(name))) as db:
            db.execute("BEGIN")
            create(db)
            insert(db, (records[number] for number in sorted(records)))
            set_last(db, counted.last if counted else 0)
            db.execute("COMMIT")
        database.write_state("writing", NOTHING)
        database.journal.unlink(missing_ok=True)  # SQLite would apply it to the new file
        os.replace(name, database.path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    database.mark_clean()
    return RecordsRepair(len(records), counted.n - len(records) if counted else None)


def _readable(database: RecordsDatabase) -> tuple[dict[int, Record], Totals | None]:
    """Return the whole rows of a damaged file, by their numbers, and how many there were, if that
    can be read. SQLite stops at a damaged page, so the rows are read from both ends.
    """
    records: dict[int, Record] = {}
    counted = None
    with suppress(DamagedError, sqlite3.Error), closing(database.connect(database.path)) as db:
        db.text_factory = lambda text: text.decode(errors="replace")
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.Error):
                for row in db.execute(f"SELECT * FROM recorded ORDER BY number {order}"):
                    if is_whole(row):
                        records[row[0]] = Record.of_cells(row)
        rows = [row for row in db.execute("SELECT * FROM totals") if is_whole(row)]
        counted = Totals(*rows[0][:-1]) if len(rows) == 1 else None
    return records, counted
