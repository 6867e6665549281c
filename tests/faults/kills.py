"""SIGKILL in the middle of every command that writes: the workspace is as before or as after."""

import os

import qkvsearch
from qkvsearch.errors import QkvError
from tests.faults import children, world
from tests.faults.operations import OPERATIONS, cases, effect
from tests.faults.runner import Fault
from tests.faults.world import copied, observe

# Of so many kills one hits a process of its own, started as a person starts it.
PROCESS_EVERY = 12
STARTING = 0.6


def kill(trial):
    """A command is killed at a random moment, or where it does something with a file."""
    known = cases()
    world_name, operation = known[trial.number % len(known)]
    if operation == "record" and trial.chance.random() < 0.5:
        return stream(trial, world_name)
    found = effect(world_name, operation)
    assert found
    path = copied(world_name, trial.folder)
    arguments = OPERATIONS[operation]()
    how, ran = _killed(trial, path, arguments, found)
    trial.counts["kills"] += ran.code == -9
    trial.counts["kills that came too late"] += ran.code == 0
    said = f"{operation} on {world_name}, killed {how}"
    if ran.code not in (0, -9):
        raise Fault(f"{said}: exit {ran.code}: {ran.last_line}")
    check(path, found, said, ran.code == 0)
    write_again(path, said)


def _killed(trial, path, arguments, found):
    chance = trial.chance
    if trial.number % PROCESS_EVERY == 0:
        after = chance.uniform(STARTING / 3, STARTING + found.seconds)
        return f"after {after:.3f} s", children.process(path, arguments, kill_after=after)
    if chance.random() < 0.4:
        after = chance.uniform(0, 1.1 * found.seconds)
        return f"after {after:.3f} s", children.command(path, arguments, kill_after=after)
    # What becomes of a workspace is decided in the last part of a command.
    first = found.events // 2 if chance.random() < 0.5 else 0
    event = chance.randrange(first, found.events)
    return f"at event {event}", children.command(path, arguments, kill_at_event=event)


def check(path, found, said, acknowledged):
    """As before or as after; after for certain where the command had said so."""
    if complaint := world.verify(path):
        raise Fault(f"{said}: does not verify: {complaint}")
    try:
        seen = observe(path)
    except QkvError as error:
        raise Fault(f"{said}: does not open: {error}") from error
    if seen == found.after or (seen == found.before and not acknowledged):
        return
    raise Fault(
        f"{said}: neither before nor after; from before: {seen.differs(found.before)}; "
        f"from after: {seen.differs(found.after)}"
    )


def write_again(path, said):
    """The next command works, and removes what the killed one left."""
    empty = world.is_empty(path)
    first = ["build", "--items"] if empty else ["add"]
    ran = children.command(path, [*first, world.files().two, *["--encoder", "corpus"] * empty])
    if ran.code:
        raise Fault(f"{said}: the next add: exit {ran.code}: {ran.last_line}")
    if complaint := world.verify(path):
        raise Fault(f"{said}: after the next add: {complaint}")
    with qkvsearch.open(path) as engine:
        there = {str(item) for item in engine.items.to_frame().reset_index()["id"]}
        if not {"900", "901"} <= there:
            raise Fault(f"{said}: the next add adds nothing")
        left = {one.name for one in (path / "builds").iterdir()}
        if strange := left - wanted(path):
            raise Fault(f"{said}: left after the next add: {sorted(strange)}")


def wanted(path):
    """Folders that the listed builds are made of."""
    import json

    names = set()
    for manifest in (path / "builds").glob("*/manifest.json"):
        content = json.loads(manifest.read_text())
        content = content.get("content", content)
        names |= {manifest.parent.name, *content.get("segments", ())}
    return names


def stream(trial, world_name):
    """One record after another, each told of when it is on disk: of those told of none is lost."""
    path = copied(world_name, trial.folder)
    before = observe(path).records
    reading, writing = os.pipe()
    ids = range(30, 130)

    def record():
        with qkvsearch.open(path) as engine:
            for number in ids:
                engine.record("killed", number, 4)
                os.write(writing, b".")

    after = trial.chance.uniform(0, 1.0)
    ran = children.forked(record, kill_after=after)
    os.close(writing)
    told = len(os.read(reading, 1000))
    os.close(reading)
    trial.counts["kills"] += ran.code == -9
    trial.counts["records told of"] += told
    said = f"records on {world_name}, killed after {after:.3f} s"
    if ran.code not in (0, -9):
        raise Fault(f"{said}: exit {ran.code}: {ran.last_line}")
    if complaint := world.verify(path):
        raise Fault(f"{said}: does not verify: {complaint}")
    with qkvsearch.open(path) as engine:
        known = "killed" in engine.users
        rows = engine.history("killed") if known else ()
        found = sorted(int(row["id"]) for row in rows)
        kept = set(before) <= set(world.records_of(engine))
    if found not in (list(ids[:told]), list(ids[: told + 1])) or not kept:
        raise Fault(f"{said}: {told} told of, {len(found)} there, former ones kept: {kept}")
    write_again(path, said)
