"""How the workspaces in this folder were made, and what is asked of them.

Each was written by the code of its time: check that commit out, and with it on PYTHONPATH run

    python make.py build NAME       # writes NAME.tar.xz
    python make.py answers NAME     # writes NAME.json, by the last code that wrote format 4

    format1           caa1cb6
    format2           1ff0cfd
    format3           91f54b3
    format4-first     f62100c, answers by 582c069
    all others        582c069
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

import pandas as pd

import qkvsearch

FOLDER = Path(__file__).parent
# As after a crash: a part of its database is in the log of SQLite.
WITH_WAL = "format4-text"
FILMS = [
    ("Kettle at Dawn", 1994, "Drama|War", "a soldier keeps his kettle warm through a long war"),
    ("The Teapot", 1999, "Comedy", "two sisters inherit a teapot and quarrel about the lid"),
    ("Anchor", 1950, "Drama|Sea", "an old captain sells his ship but not the anchor"),
    ("Anchor", 2004, "Comedy|Sea", "a ship without an anchor drifts through a wedding"),
    ("L'Été bleu", 1980, "Drama", "a summer by the sea, and a letter that comes too late"),
    ("Orbit of Tea", 2011, "Sci-Fi|Comedy", "a space station runs out of tea"),
    ("Last Orbit", 2014, "Sci-Fi|Drama", "a captain alone in a space ship counts the days"),
    ("War of the Lids", 2001, "Comedy|War", "two kitchens go to war about a kettle"),
    ("The Lighthouse Keeper", 1962, "Drama|Sea", "a keeper writes letters to every ship"),
    ("Night Ferry", 1988, "Thriller|Sea", "a thief hides on a ferry in a storm"),
    ("Storm Warning", 1991, "Thriller", "a letter warns of a storm that nobody expects"),
    ("Space Kitchen", 2018, "Sci-Fi|Comedy", "a cook bakes bread on the way to mars"),
]
ADDED = [("Breakfast on Mars", 2021, "Sci-Fi|Comedy", "tea and bread for a station on mars")]
USERS = ["ada", "ben", "cleo", "dan", "eve", "fay", "gus", "hal"]
SETTINGS = {"n_components": 8, "reg": 0.02, "max_iter": 6}
TUNED = {"protocol": "random", "seed": 0, "settings": SETTINGS}
TEXT = {
    "queries": ["storm at sea", "tea in space", "lid kettle war", "Anchor", "zzz"],
    "users": ["ada", "fay", "new one"],
    "items": ["f03", "f07", "f13"],
    "where": "year >= 1990 and genres like '%Comedy%'",
}
WHOLE = TEXT | {"users": ["7", "21", "700"], "items": ["3", "12", "20"]}
FOLDED = TEXT | {"users": ["ADA", "fay", "New One"], "items": ["f-03", "F-07"]}
QUESTIONS = {
    "format4-text": TEXT,
    "format4-whole": WHOLE,
    "format4-folded": FOLDED,
    "format4-things": TEXT | {"users": ["ada"], "items": ["f03"]},
    "format4-first": TEXT | {"users": ["ada", "ben"], "items": ["f03"]},
}


def films(ids, rows=FILMS) -> pd.DataFrame:
    columns = ["title", "year", "genres", "plot"]
    frame = pd.DataFrame(rows, columns=columns)
    frame.insert(0, "id", ids[: len(frame)])
    return frame


def log(ids, users=USERS, value="rating") -> pd.DataFrame:
    """Everyone of an even place likes what is funny, the others the sea; with times."""
    rows = []
    for n, user in enumerate(users):
        for place, (_, year, genres, _) in enumerate(FILMS):
            if (3 * n + 5 * place) % 4 == 0:
                continue
            liked = ("Comedy" if n % 2 == 0 else "Sea") in genres
            rows.append((user, ids[place], 5 - (n + year) % 2 if liked else 1 + year % 3,
                         1_600_000_000 + 86_400 * (7 * n + place)))  # fmt: skip
    return pd.DataFrame(rows, columns=["user", "item", value, "timestamp"])


def text_ids(pattern: str = "f{:02}") -> list[str]:
    return [pattern.format(place) for place in range(1, 15)]


def build_text(path: Path) -> None:
    """Ratings and times; tuned; one film added, so that there are former builds; recorded."""
    from qkvsearch.revision import learn_preferences

    ids = text_ids()
    engine = qkvsearch.build(path, items=films(ids), interactions=log(ids), encoder="corpus")
    learn_preferences(path, TUNED)
    engine = qkvsearch.Engine(path)
    engine.add(films(ids[12:], ADDED))
    engine.record("ada", "f13", 4)
    rows = [("fay", "f01", 5.0, 1_650_000_000), ("new one", "f12", 4.0, 1_650_000_100),
            ("new one", "f06", 5.0, 1_650_000_200)]  # fmt: skip
    engine.record_many(pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"]))
    engine.record("new one", "f13")
    engine.close()


def build_whole(path: Path) -> None:
    """Whole numbers and weights; one film removed, one replaced; recorded, of a gone film too."""
    ids = list(range(1, 13))
    weighed = log(ids, [7, 12, 21, 100, 300], value="count")
    engine = qkvsearch.build(path, items=films(ids), interactions=weighed, encoder="corpus")
    engine.record(700, 5, 3)
    engine.record(700, 12, 2)
    engine.record(7, 1)
    engine.remove([5])
    engine.add(films([20], ADDED))
    engine.close()


def build_folded(path: Path) -> None:
    from qkvsearch.data.columns import Columns

    ids = text_ids("F-{:02}")
    rows = log(ids)
    rows["item"] = [item.lower() if n % 2 else item for n, item in enumerate(rows["item"])]
    engine = qkvsearch.build(
        path, items=films(ids), interactions=rows, encoder="corpus", columns=Columns(fold_ids=True)
    )
    engine.record("ADA", "f-09", 5)
    engine.record("new ONE", "F-03", 4)
    engine.record("New One", "f-04", 4)
    engine.close()


def build_things(path: Path) -> None:
    """A catalog alone, one film replaced; somebody recorded since."""
    ids = text_ids()
    engine = qkvsearch.build(path, items=films(ids), encoder="corpus")
    engine.add(films(ids[2:], ADDED))
    engine.record("ada", "f03")
    engine.close()


def build_former(path: Path) -> None:
    """With the arguments that the first code had; tuned where it could be."""
    ids = text_ids()
    engine = qkvsearch.build(path, items=films(ids), interactions=log(ids), encoder="corpus")
    engine.record("ada", "f11", 4)
    engine.record("ben", "f12", 5)
    try:
        from qkvsearch.revision.tastes import learn_tastes
    except ImportError:
        return
    learn_tastes(path, TUNED)


BUILDERS = {
    "format4-text": build_text,
    "format4-whole": build_whole,
    "format4-folded": build_folded,
    "format4-things": build_things,
}


def answers(path: Path, name: str) -> dict[str, object]:
    """What the workspace says: the same by whatever code reads it."""
    asked = QUESTIONS[name]
    found: dict[str, object] = {}
    with qkvsearch.Engine(path) as engine:
        columns = [column.name for column in engine.tables.catalog_columns]
        items = engine.items
        info = engine.info()
        for fact in ("workspace", "format", "megabytes", "qkvsearch"):
            info.pop(fact)
        found |= {"info": info, "columns": columns}
        found["items"] = items.list(fields=columns).to_records()
        found["where"] = items.list(where=asked["where"]).to_records()
        found["users"] = engine.users.list().to_records()
        for query in asked["queries"]:
            found[f"search {query}"] = shown(engine.search(query, explain=True, fields=columns))
            found[f"where {query}"] = shown(engine.search(query, where=asked["where"]))
        for item in asked["items"]:
            found[f"show {item}"] = engine.show(item)
            found[f"similar {item}"] = shown(engine.similar(item))
        for user in asked["users"]:
            history = engine.history(user)
            found[f"history {user}"] = [history.to_records(), list(history.notes)]
            found[f"recommend {user}"] = shown(engine.recommend(user=user, explain=True))
            found[f"seen {user}"] = shown(engine.recommend(user=user, seen=True, k=20))
            query = asked["queries"][0]
            found[f"search for {user}"] = shown(engine.search(query, user=user))
            if info["users"]:
                found[f"similar to {user}"] = shown(engine.similar_users(user))
    return found


def shown(ranking) -> list[object]:
    return [rounded(ranking.to_records()), ranking.n_candidates, list(ranking.notes)]


def rounded(value):
    """To six digits, which float32 has on every machine."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(cell) for key, cell in value.items()}
    return [rounded(cell) for cell in value] if isinstance(value, list) else value


def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Owned by nobody. What a crash leaves beside a database is kept where there is something."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    empty = member.name.endswith("-wal") and not member.size
    return None if empty or member.name.endswith("-shm") else member


def main(what: str, name: str) -> None:
    archive = FOLDER / f"{name}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if what == "build":
            BUILDERS.get(name, build_former)(path)
            if name != WITH_WAL:
                with closing(sqlite3.connect(path / "workspace.db")) as db:
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with tarfile.open(archive, "w:xz") as packed:
                packed.add(path, arcname=name, filter=kept)
            return
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        found = answers(path, name)
    lines = [f"{json.dumps(key)}: {json.dumps(found[key], ensure_ascii=False)}" for key in found]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
