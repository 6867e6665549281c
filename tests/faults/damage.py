"""Files of a workspace damaged: each is named, no answer is another, nothing makes it pass."""

import shutil
from functools import cache
from pathlib import Path

import qkvsearch
from qkvsearch.errors import QkvError
from tests.faults import children, world
from tests.faults.operations import OPERATIONS, cases, effect
from tests.faults.runner import Fault
from tests.faults.world import QUESTIONS, copied, made

WORLD_NAMES = ("segments", "base")
WRITES = (
    "add", "add changed", "remove", "record", "learn", "compact", "compact drop", "rollback",
    "forget", "add log", "record undo", "build",
)  # fmt: skip
# They say who is writing, to people; nothing goes by what is in them.
INFORMATIONAL = (".lock",)


@cache
def damageable(world_name):
    """Files in a workspace, by their paths in it."""
    path = made(world_name)
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


# --- kinds of damage: of a file, and of others in the same workspace ---


def flip(file, chance, _):
    """One to three bits in bytes of their own."""
    content = bytearray(file.read_bytes())
    n = min(chance.randint(1, 3), len(content))
    for place in chance.sample(range(len(content)), n):
        content[place] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    return n


def truncate(file, chance, _):
    size = file.stat().st_size
    if not size:
        return lengthen(file, chance, _)
    left = chance.choice([0, size - 1, chance.randrange(size), chance.randrange(size)])
    with file.open("rb+") as opened:
        opened.truncate(left)
    return size - left


def lengthen(file, chance, _):
    n = chance.randint(1, 4096)
    with file.open("ab") as opened:
        opened.write(chance.choice([bytes(n), chance.randbytes(n)]))
    return n


def overwrite(file, chance, _):
    """A run of bytes becomes zeros, or what was elsewhere: a block that was not written."""
    content = bytearray(file.read_bytes())
    n = min(len(content), chance.choice([8, 64, 512, 4096]))
    start = chance.randrange(len(content) - n + 1)
    former = bytes(content[start : start + n])
    content[start : start + n] = bytes(n) if chance.random() < 0.7 else chance.randbytes(n)
    if content[start : start + n] == former:
        return flip(file, chance, _)
    file.write_bytes(content)
    return n


def swap(file, chance, others):
    """Its content and another file's, if they differ."""
    alike = [one for one in others if one.suffix == file.suffix and one != file]
    alike = [one for one in alike if one.read_bytes() != file.read_bytes()]
    if not alike:
        return overwrite(file, chance, others)
    other = chance.choice(alike)
    content = other.read_bytes()
    other.write_bytes(file.read_bytes())
    file.write_bytes(content)
    return len(content)


def delete(file, chance, _):
    size = file.stat().st_size
    file.unlink()
    return max(1, size)


def replace(file, chance, _):
    """A folder, or a link to something outside, stands in its place."""
    size = file.stat().st_size
    outside = file.parents[len(file.parents) // 2]
    file.unlink()
    if chance.random() < 0.5:
        file.mkdir()
    else:
        file.symlink_to(outside / "nothing-here" if chance.random() < 0.5 else "/etc/hostname")
    return max(1, size)


KINDS = [
    (flip, 0.5), (overwrite, 0.15), (truncate, 0.1), (lengthen, 0.05), (swap, 0.1),
    (delete, 0.06), (replace, 0.04),
]  # fmt: skip


def damage(trial):
    """A file is damaged; then the workspace is verified, asked, written to and repaired."""
    chance = trial.chance
    world_name = chance.choice(WORLD_NAMES)
    files = damageable(world_name)
    name = files[trial.number % len(files)]
    path = copied(world_name, trial.folder)
    kinds, weights = zip(*KINDS, strict=True)
    kind = chance.choices(kinds, weights)[0]
    others = [path / other for other in files]
    if (path / name).stat().st_size == 0 and kind in (flip, overwrite):
        kind = lengthen
    trial.counts["damaged bytes"] += kind(path / name, chance, others)
    trial.counts["damaged files"] += 1
    trial.counts[f"{kind.__name__}"] += 1
    said = f"{name} of {world_name}, {kind.__name__}"
    if name.endswith(INFORMATIONAL) and kind is not replace:
        named = None
    else:
        changed = [one for one in files if not _same(path / one, made(world_name) / one)]
        named = {text for one in changed for text in (one, Path(one).name)}
    work = trial.folder / f"work-{trial.folder.name}"
    shutil.copytree(path, work, symlinks=True)
    if not name.endswith(INFORMATIONAL):
        complains(path, named, said)
    asked(trial, path, world_name, named, said)
    written(trial, work, world_name, name, named, said)
    if trial.chance.random() < 0.5:
        repaired(trial, chance.choice([path, work]), world_name, said)


def _same(one, other):
    return one.is_file() and not one.is_symlink() and one.read_bytes() == other.read_bytes()


def complains(path, named, said):
    """`info --verify` names the file."""
    found = world.verify(path)
    if named is None and found:
        raise Fault(f"{said}: verify complains: {found}")
    if named is not None and not found:
        raise Fault(f"{said}: verifies clean")
    if named is not None and not any(one in found for one in named):
        raise Fault(f"{said}: verify does not name it: {found}")


def asked(trial, path, world_name, named, said):
    """Each question has the same answer as ever, or an error that names the file."""
    expected = dict(effect_before(world_name).answers)
    try:
        engine = qkvsearch.open(path)
    except QkvError as error:
        _names(error, named, f"{said}: open")
        trial.counts["refused to open"] += 1
        return
    with engine:
        for name in trial.chance.sample(list(QUESTIONS), len(QUESTIONS)):
            try:
                found = world.ask(engine, name)
            except QkvError as error:
                _names(error, named, f"{said}: {name}")
                trial.counts["answers refused"] += 1
                continue
            trial.counts["answers as ever"] += 1
            if found != expected[name]:
                raise Fault(
                    f"{said}: {name}: another answer: {found[:200]} instead of "
                    f"{expected[name][:200]}"
                )


def _names(error, named, said):
    if named is None or not any(one in str(error) for one in named):
        raise Fault(f"{said}: the error names no file: {type(error).__name__}: {error}")


def effect_before(world_name):
    found = effect(world_name, "record")
    assert found
    return found.before


def written(trial, path, world_name, name, named, said):
    """A command that writes refuses, or does what it does in a sound workspace; what is damaged
    stays so, or goes.
    """
    known = [one for one in WRITES if (world_name, one) in cases()]
    operation = trial.chance.choice(known)
    said = f"{said}; then {operation}"
    ran = children.command(path, OPERATIONS[operation]())
    if ran.code not in (0, 1) or "Traceback" in ran.stderr:
        raise Fault(f"{said}: exit {ran.code}: {ran.last_line}")
    found = world.verify(path)
    if ran.code == 1:
        trial.counts["writes refused"] += 1
        if named is None or not any(one in ran.stderr for one in named):
            raise Fault(f"{said}: refused without a name: {ran.last_line}")
        if not found and not name.endswith(INFORMATIONAL):
            raise Fault(f"{said}: refused, and verifies clean since")
        return
    trial.counts["writes done"] += 1
    if found and (named is None or not any(one in found for one in named)):
        raise Fault(f"{said}: verify names another file: {found}")
    if not found and named is not None and _still_there(path, world_name, name):
        raise Fault(f"{said}: damaged as it was, and verifies clean")
    expected = effect(world_name, operation)
    assert expected
    try:
        seen = world.observe(path)
    except QkvError as error:
        _names(error, named, f"{said}: observed")
        return
    if seen != expected.after:
        raise Fault(f"{said}: not as in a sound workspace: {seen.differs(expected.after)}")


def _still_there(path, world_name, name):
    """Whether the file is still the damaged one, and not gone or written anew."""
    file = path / name
    return file.is_file() and name.startswith("builds") and not _same(file, made(world_name) / name)


def repaired(trial, path, world_name, said):
    """`repair` says what it cannot do, or verify is clean afterwards; what it does not name as lost
    or learned again is as it was.
    """
    try:
        before = world.observe(path)
    except QkvError:
        before = None
    try:
        done = qkvsearch.repair(path)
    except QkvError as error:
        trial.counts["repairs that say what cannot be"] += 1
        if len(str(error)) < 20:
            raise Fault(f"{said}; repair: {error!r}") from error
        return
    trial.counts["repairs"] += 1
    told = f"{said}; repair: {done}"
    if found := world.verify(path):
        raise Fault(f"{told}; done, yet: {found}")
    seen = world.observe(path)
    is_same = not done.lost and "again" not in str(done) and not done.notes
    if before is not None and is_same and seen != before:
        raise Fault(f"{told}; {seen.differs(before)}")
    if not done.lost and seen.items not in items_before_and_after(world_name):
        raise Fault(f"{told}; other items than before and after: {len(seen.items)}")
    again = children.command(path, ["add", world.files().two])
    if again.code:
        raise Fault(f"{told}; done, yet add: {again.last_line}")


def items_before_and_after(world_name):
    """Of each command that may have come before the repair."""
    found = [effect(world_name, name) for name in WRITES if (world_name, name) in cases()]
    return [items for one in found if one for items in (one.before.items, one.after.items)]
