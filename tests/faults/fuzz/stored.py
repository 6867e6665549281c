"""Files of a workspace changed with new checksums, so that more than checksums is tried."""

import contextlib
import io
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np

import qkvsearch
from qkvsearch.errors import QkvError
from qkvsearch.store.array_files import file_entry
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from tests.faults import fuzz, world
from tests.faults.damage import damageable

SIGNED = "content"


def signed_again(path):
    """Manifests and root say what the files are now; a manifest's own content stays as it is."""
    checksums = {}
    root_file = path / "root.json"
    root = json.loads(root_file.read_text())[SIGNED]
    folders = sorted(path.glob("builds/*/manifest.json"))
    for file in folders:
        content = json.loads(file.read_text())[SIGNED]
        with contextlib.suppress(AttributeError, KeyError, TypeError, IndexError):
            for name, entry in content["files"].items():
                if (file.parent / name).is_file():
                    entry.update(file_entry(file.parent / name))
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            content["below"] = [
                [name, checksums.get(name, former)] for name, former in content["below"]
            ]
        checksums[file.parent.name] = write_checksummed(file, content)
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        for build in root["builds"]:
            build["manifest"] = checksums.get(build["name"], build["manifest"])
    write_checksummed(root_file, root)


# --- arrays ---


def changed_array(file, chance):
    """Other numbers, another shape or type, a pickle, or another header."""
    array = np.load(file)
    roll = chance.random()
    if roll < 0.45 and array.size:
        return _saved(_other_numbers(array, chance))
    if roll < 0.65:
        size = chance.choice([0, 1, max(0, array.size - 1), array.size + 1, 3])
        return _saved(np.resize(array, size) if array.size else np.zeros(size, array.dtype))
    if roll < 0.75:
        return _saved(array[..., None] if chance.random() < 0.5 else array[None])
    if roll < 0.85:
        return _saved(_other_type(array, chance))
    content = file.read_bytes()
    if roll < 0.88:
        return content[:10] + fuzz.pickled()
    header = content[: min(len(content), 128)]
    return fuzz.changed_bytes(header, chance) + content[len(header) :]


def _saved(array):
    made = io.BytesIO()
    np.save(made, array, allow_pickle=False)
    return made.getvalue()


def _other_numbers(array, chance):
    found = array.copy()
    flat = found.reshape(-1)
    places = [chance.randrange(flat.size) for _ in range(chance.choice([1, 1, 3, flat.size]))]
    if found.dtype.kind == "f":
        flat[places] = chance.choice([np.nan, np.inf, -np.inf, 0, -1, 3e38])
    elif found.dtype.kind in "iu":
        most = np.iinfo(found.dtype)
        flat[places] = chance.choice([most.min, most.max, 0, most.max // 2, 100_000 % most.max])
    else:
        flat[places] = flat[chance.randrange(flat.size)]
    return found


def _other_type(array, chance):
    names = ["<f8", "<f4", "<f2", "<i8", "<i4", "|u1", "|b1", "<U3", "|S2", "<c16", ">f4"]
    if array.dtype.kind != "S":  # NumPy 2.4 itself crashes where long bytes become dates
        names.append("<M8[s]")
    with contextlib.suppress(ValueError, TypeError, OverflowError), np.errstate(all="ignore"):
        return array.astype(chance.choice(names))
    return np.zeros(array.shape, "<U1")


# --- catalogs and records ---


def changed_database(file, chance):
    """Other cells, other tables, or bytes that SQLite may stumble over."""
    if chance.random() < 0.4:
        content = bytearray(file.read_bytes())
        for _ in range(chance.choice([1, 2, 8])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content)
    db = sqlite3.connect(":memory:")
    db.deserialize(file.read_bytes())
    db.create_function("random", 0, lambda: chance.getrandbits(62))  # to draw the same rows again
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = chance.choice(tables)
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    column = chance.choice(columns)
    strange = chance.choice([None, -1, 10**12, "x", 2.5, b"\xff\xfe", "\0", ""])
    with contextlib.suppress(sqlite3.Error):
        match chance.randrange(6):
            case 0:
                db.execute(f"DROP TABLE {table}")
            case 1:
                db.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other')
            case 2:
                db.execute(f"DELETE FROM {table} WHERE random() % 2")
            case 3:
                db.execute(f"ALTER TABLE {table} RENAME TO former_{table}")
                db.execute(f"CREATE VIEW {table} AS SELECT * FROM former_{table}")
            case _:
                db.execute(f'UPDATE {table} SET "{column}" = ? WHERE random() % 5 = 0', (strange,))
    db.commit()
    return db.serialize()


def change(path, name, chance):
    """A file of a workspace, by its path in it, becomes another one, and is signed."""
    file = path / name
    if name.endswith(".json"):
        content = read_checksummed(file)
        for _ in range(chance.choice([1, 1, 2])):
            content = fuzz.changed_json(content, chance)
        write_checksummed(file, content)
        signed_again(path)
        if name == "root.json":
            write_checksummed(file, content)
        return
    kind = changed_array if name.endswith(".npy") else changed_database
    made = kind(file, chance)
    file.unlink()
    file.write_bytes(made)
    signed_again(path)


def linked(folder, called):
    """A copy whose files are the same ones, to be replaced and never written into."""
    return Path(
        shutil.copytree(world.made("segments"), folder / called, copy_function=_link, symlinks=True)
    )


def _link(source, target):
    if source.endswith((".npy", "items.db")):
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)


def fuzz_stored(trial):
    """What opens answers, or says that it cannot; no process comes to its end by it."""
    files = [name for name in damageable("segments") if name.endswith((".json", ".npy", ".db"))]
    current = [name for name in files if "/" not in name or _is_current(name)]

    def make(chance):
        return chance.choice(current if chance.random() < 0.8 else files), chance

    def use(given):
        name, chance = given
        path = linked(trial.folder, f"segments-{trial.folder.name}-{trial.counts['inputs']}")
        change(path, name, chance)
        refused = []
        try:
            with qkvsearch.open(path) as engine:
                for question in world.QUESTIONS:
                    try:
                        world.ask(engine, question)
                    except QkvError as error:
                        refused.append(error)
                engine.info(verify=chance.random() < 0.3)
                engine.items.to_frame()
                world.records_of(engine)
        finally:
            shutil.rmtree(path, ignore_errors=True)
        if refused:
            raise refused[0]

    fuzz.inputs(trial, make, use, n=20)


def _is_current(name):
    with qkvsearch.open(world.made("segments")) as engine:
        names = {segment.name for segment in engine.snapshot.segments}
    return Path(name).parent.name in names
