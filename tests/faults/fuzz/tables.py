"""Tables of every kind that is read: made from rows of strange cells, then changed byte by byte."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from qkvsearch.data.columns import Columns
from qkvsearch.data.sources import read_source
from tests.faults import fuzz
from tests.faults.runner import Trial

NAMES = [
    "id", "title", "year", "tags", "user", "item", "rating", "timestamp", "weight", "price", "date",
    "description", "", " ", "ID", "Title", "userId", "movieId", "0", "a,b", "id", "unnamed",
]  # fmt: skip
CELLS = ["1", "2", "3", "7", "2.5", "2020-01-01", "31/12/1999", "a|b", "yes", "no", "$3", "5%"]


def rows(chance: random.Random) -> list[list[str]]:
    n_columns = chance.randint(1, 6)
    start = [chance.choice(NAMES[:9]) for _ in range(n_columns)]
    names = [name if chance.random() < 0.85 else fuzz.text(chance, 2) for name in start]
    table = [names]
    for number in range(chance.choice([0, 1, 3, 8, 20])):
        row = [
            str(number)
            if chance.random() < 0.3
            else chance.choice(CELLS)
            if chance.random() < 0.5
            else fuzz.text(chance, 3)
            for _ in range(n_columns)
        ]
        if chance.random() < 0.03:
            row = row[: chance.randint(0, n_columns)] * chance.choice([1, 2])
        table.append(row)
    return table


def _delimited(table: list[list[str]], chance: random.Random) -> bytes:
    sign = chance.choice([",", ",", ";", "\t", "|", "::"])
    quote = chance.choice(["", '"', '"'])
    ends = chance.choice(["\n", "\n", "\r\n", "\r"])
    lines = [sign.join(quote + cell.replace('"', '""') + quote for cell in row) for row in table]
    encoding = chance.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
    errors = "surrogatepass" if encoding.startswith("utf") else "replace"
    return ends.join(lines).encode(encoding, errors)


def _records(table: list[list[str]], chance: random.Random) -> list[dict]:
    names, *cells = table
    found = [dict(zip(names, row, strict=False)) for row in cells]
    for record in found:
        for name in record:
            if chance.random() < 0.1:
                record[name] = chance.choice([None, True, 1, 2.5, [], ["a", 1], {"a": {"b": []}}])
    return found


def _json(table: list[list[str]], chance: random.Random) -> bytes:
    records = _records(table, chance)
    whole = chance.choice([records, records, {"rows": records}, {"a": 1}, 3, None, [[1, 2]], [1]])
    return json.dumps(whole, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _json_lines(table: list[list[str]], chance: random.Random) -> bytes:
    lines = (json.dumps(one, ensure_ascii=False) for one in _records(table, chance))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _zip(table: list[list[str]], chance: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", chance.choice([0, 8])) as archive:
        for _ in range(chance.choice([0, 1, 1, 2])):
            name = chance.choice(["t.csv", "../t.csv", "/t.csv", "a/b.json", "x", "t.zip", "t.gz"])
            if name not in archive.namelist():
                archive.writestr(name, _delimited(table, chance))
    return made.getvalue()


def _workbook(table: list[list[str]], chance: random.Random) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in table:
        with contextlib.suppress(Exception):  # cells that no workbook can hold
            book.active.append(row)
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def _database(table: list[list[str]], chance: random.Random) -> bytes:
    db = sqlite3.connect(":memory:")
    names, *cells = table
    columns = [f'"{name.translate({0: None, 34: None})}{k}"' for k, name in enumerate(names)]
    with contextlib.suppress(sqlite3.Error, UnicodeError):
        name = chance.choice(["items", "t", "ratings"])
        db.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        places = ", ".join("?" * len(columns))
        for row in cells:
            with contextlib.suppress(sqlite3.Error, UnicodeError):
                db.execute(f"INSERT INTO {name} VALUES ({places})", row)
        db.commit()
        return db.serialize()
    return b"SQLite format 3\0"


def _parquet(table: list[list[str]], chance: random.Random) -> bytes:
    names, *cells = table
    whole = [row for row in cells if len(row) == len(names)]
    made = io.BytesIO()
    with contextlib.suppress(Exception):  # what is no text in UTF-8
        frame = pd.DataFrame(whole, columns=[f"{name}{k}" for k, name in enumerate(names)])
        frame.to_parquet(made)
    return made.getvalue()


KINDS: dict[str, tuple[Callable[[list[list[str]], random.Random], bytes], float]] = {
    ".csv": (_delimited, 0.4),
    ".tsv": (_delimited, 0.1),
    ".dat": (_delimited, 0.08),
    ".json": (_json, 0.12),
    ".jsonl": (_json_lines, 0.12),
    ".zip": (_zip, 0.05),
    ".csv.gz": (lambda table, chance: gzip.compress(_delimited(table, chance)), 0.05),
    ".xlsx": (_workbook, 0.02),
    ".db": (_database, 0.04),
    ".parquet": (_parquet, 0.02),
}


def file(chance: random.Random) -> tuple[str, bytes, dict]:
    """How a file's name ends, its bytes, and what else a build is told."""
    ends = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
    made = KINDS[ends][0](rows(chance), chance)
    if chance.random() < 0.6:
        made = fuzz.changed_bytes(made, chance)
    if chance.random() < 0.02:
        made = chance.choice([fuzz.pickled(), b"", chance.randbytes(300), b"\x1f\x8b" + made])
    options: dict = {}
    if chance.random() < 0.2:
        names = [*NAMES, "user", "tags,year"]
        option = chance.choice(["id", "title", "user", "item", "rating", "time"])
        options["columns"] = Columns(**{option: chance.choice(names)})
    return ends, made, options


def fuzz_tables(trial: Trial) -> None:
    """A file is read whole, or refused by an error that says what and where."""
    path = trial.folder / "table"

    def use(made: tuple[str, bytes, dict]) -> None:
        ends, content, options = made
        named = Path(f"{path}{ends}")
        named.write_bytes(content)
        read_source(named, **options)

    fuzz.inputs(trial, file, use, most=700)
