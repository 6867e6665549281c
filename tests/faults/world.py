"""The workspaces that faults are done to, made from seeded tables, and what is seen of one."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

import qkvsearch
from qkvsearch.errors import QkvError

WORDS = (
    "rain river bank guitar bread attention winter mountain engine garden music planet stone "
    "forest copper window letter harbor island salt thunder violin kettle meadow"
).split()
N_ITEMS, N_USERS, N_LOG = 240, 50, 1500


def items(first, n, seed=0):
    """Rows with id, title, year and tags."""
    chance = random.Random(f"items {first} {n} {seed}")
    rows = [
        (
            number,
            f"{' '.join(chance.choices(WORDS, k=3))} number{number}",
            1990 + number % 30,
            "|".join(chance.choices(WORDS, k=2)),
        )
        for number in range(first, first + n)
    ]
    return pd.DataFrame(rows, columns=["id", "title", "year", "tags"])


def log(n, seed=0):
    chance = random.Random(f"log {n} {seed}")
    rows = [
        (
            f"u{chance.randrange(N_USERS)}",
            chance.randrange(N_ITEMS),
            chance.randint(1, 5),
            10**9 + k,
        )
        for k in range(n)
    ]
    return pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"])


@dataclass(frozen=True)
class Files:
    """The tables that commands read."""

    folder: Path
    items: Path
    log: Path
    other_items: Path
    new: Path
    changed: Path
    more_log: Path
    two: Path


@cache
def files():
    """Written once, before processes are forked."""
    folder = Path(tempfile.mkdtemp(prefix="faults-tables-"))
    changed = pd.concat([items(3, 6, seed=1), items(700, 4)])
    tables = {
        "items": items(0, N_ITEMS),
        "log": log(N_LOG),
        "other_items": items(100, 180, seed=2),
        "new": items(500, 40),
        "changed": changed,
        "more_log": log(60, seed=1),
        "two": items(900, 2),
    }
    paths = {name: folder / f"{name}.csv" for name in tables}
    for name, table in tables.items():
        table.to_csv(paths[name], index=False)
    return Files(folder, **paths)


# --- the workspaces ---


def _base(path):
    """A build beside the one before it, and a few records."""
    given = files()
    qkvsearch.build(path, items=given.other_items, encoder="corpus").close()
    engine = qkvsearch.build(path, items=given.items, interactions=given.log, encoder="corpus")
    for user, item, rating in [("u1", 7, 4), ("u2", 9, 2), ("someone", 11, 5)]:
        engine.record(user, item, rating)
    engine.close()


def _segments(path):
    """The same with items that joined, changed and left since, and more records."""
    _base(path)
    with qkvsearch.open(path) as engine:
        engine.add(items(300, 5))
        engine.add(items(5, 4, seed=3))
        engine.remove([20, 21, 301])
        engine.add(items(400, 3))
        engine.record("u3", 302, 5)
        engine.record("u1", 8, 1)


def _plain(path):
    """Items alone."""
    qkvsearch.build(path, items=files().items, encoder="corpus").close()


def _nothing(path):
    """A folder in which nobody has built yet."""
    path.mkdir(parents=True)


WORLDS = {
    "base": _base, "segments": _segments, "plain": _plain, "nothing": _nothing,
}  # fmt: skip


@cache
def made(name):
    """A workspace to copy from; nobody changes it."""
    path = Path(tempfile.mkdtemp(prefix=f"faults-{name}-")) / name
    WORLDS[name](path)
    return path


def copied(name, folder, called=""):
    """A copy of one, under a name that no other has: what a process knows of files, it knows by
    their paths.
    """
    return Path(
        shutil.copytree(made(name), folder / f"{called or name}-{folder.name}", symlinks=True)
    )


# --- what is seen of one ---

QUESTIONS = {
    "search": lambda e: e.search("rain river", k=20),
    "search explained": lambda e: e.search("guitar music garden", explain=True),
    "search where": lambda e: e.search("winter bread", where="year > 2000", fields=["tags"]),
    "search semantic": lambda e: e.search("stone", heads="semantic"),
    "search lexical": lambda e: e.search("number12 harbor", heads="lexical"),
    "recommend": lambda e: e.recommend(user="u5", explain=True),
    "recommend likes": lambda e: e.recommend(likes=[3, 12], seen=True),
    "similar": lambda e: e.similar(33),
    "show": lambda e: e.show(12),
    "history": lambda e: e.history("u1"),
}


@dataclass(frozen=True)
class Observed:
    """All that a person can learn of a workspace, as text."""

    items: tuple[str, ...]
    users: tuple[str, ...]
    records: tuple[str, ...]
    answers: tuple[tuple[str, str], ...]

    def differs(self, other):
        """Where two differ, in short."""
        parts = []
        for name in ("items", "users", "records"):
            mine, its = set(getattr(self, name)), set(getattr(other, name))
            if getattr(self, name) != getattr(other, name):
                parts.append(f"{name} +{sorted(mine - its)[:2]} −{sorted(its - mine)[:2]}")
        for (name, mine), (_, its) in zip(self.answers, other.answers, strict=True):
            if mine != its:
                parts.append(f"answer to {name!r}: {mine[:120]} instead of {its[:120]}")
        return "; ".join(parts)[:2000]


NOTHING = Observed((), (), (), ())


def ask(engine, name):
    """One question's answer as text; what cannot be asked of a workspace is an answer, too."""
    try:
        return as_text(QUESTIONS[name](engine))
    except LookupError as error:
        if isinstance(error, QkvError):
            return f"{type(error).__name__}: {error}"
        raise


def as_text(answer):
    """Without when something was recorded: that differs from run to run."""
    rows = answer.to_records() if hasattr(answer, "to_records") else [answer]
    notes = list(getattr(answer, "notes", ()))
    for row in rows:
        if row.get("recorded"):
            row.pop("time", None)
    return json.dumps([rows, notes], ensure_ascii=False, default=str)


def observe(path):
    """A workspace as it is now, `NOTHING` where there is none yet. Raises `QkvError`."""
    if is_empty(path):
        return NOTHING
    with qkvsearch.open(path) as engine:
        return observe_engine(engine)


def is_empty(path):
    """Whether nothing was ever made the current build: there is no root, and nothing opens."""
    if (path / "root.json").exists() or not path.name.startswith("nothing"):
        return False
    try:
        qkvsearch.open(path).close()
    except QkvError:
        return True
    return False


def observe_engine(engine):
    answers = tuple((name, ask(engine, name)) for name in QUESTIONS)
    # Users are listed by when they came, which differs from run to run.
    users = tuple(sorted(line.partition(" ")[2] for line in lines(engine.users.to_frame())))
    return Observed(lines(engine.items.to_frame()), users, records_of(engine), answers)


def lines(table):
    """A line a row, without times."""
    table = table[[name for name in table if "time" not in str(name)]].reset_index()
    return tuple(map(" ".join, table.astype(str).itertuples(index=False, name=None)))


def records_of(engine):
    """What was recorded, in its order, without the times."""
    rows = [
        {name: row[name] for name in ("user", "item", "rating", "weight") if name in row}
        for row in engine.records(k=None)
    ]
    return tuple(json.dumps(row, default=str) for row in rows)


def verify(path):
    """Nothing where every file is as written, else the error."""
    if is_empty(path):
        return ""
    try:
        with qkvsearch.open(path) as engine:
            engine.info(verify=True)
    except QkvError as error:
        return str(error) or type(error).__name__
    return ""
