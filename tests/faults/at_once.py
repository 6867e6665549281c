"""Two writers, a recorder and two readers at once, for minutes; now and then a writer is killed."""

import json
import os
import random
import time

import qkvsearch
from tests.faults import children, world
from tests.faults.runner import Fault, die_with_parent
from tests.faults.world import QUESTIONS, copied, verify

# Items of one `add` come together or not at all.
BATCH, FIRST = 5, 10_000
# Their answers have in them what is recorded meanwhile.
OF_RECORDS = ("recommend", "history", "show")
# Of so many commands of a writer one is killed.
KILLED_EVERY = 15


class Worker:
    """One of those at once, in a process of its own; what it says goes to a file, a line each."""

    def __init__(self, number, path, folder, seed, until):
        self.number, self.path, self.folder, self.until = number, path, folder, until
        self.chance = random.Random(f"{seed} {number}")
        self.said = folder / f"said-{number}.jsonl"

    def say(self, **what):
        with self.said.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def run(self, turn):
        """A forked process that takes turns until the time is over."""
        pid = os.fork()
        if pid == 0:
            code = 1
            die_with_parent()
            try:
                number = 0
                while time.time() < self.until:
                    turn(number)
                    number += 1
                code = 0
            except BaseException as error:
                self.say(fault=f"{type(error).__name__}: {error}"[:600])
            finally:
                os._exit(code)
        return pid

    def command(self, *arguments, may_be_killed=False):
        """Whether it was done; False where it was killed. Raises `Fault` where it failed."""
        words = [str(word) for word in arguments]
        after = None
        if may_be_killed and self.chance.randrange(KILLED_EVERY) == 0:
            after = self.chance.uniform(0, 0.4)
        if self.chance.randrange(10):
            ran = children.command(self.path, words, kill_after=after)
        else:
            ran = children.process(self.path, words, kill_after=after)
        if ran.code == -9 and after is not None:
            self.say(done="killed")
            return False
        if ran.code:
            raise Fault(f"{words}: exit {ran.code}: {ran.last_line}")
        self.say(done=words[0])
        return True

    # --- what each of them does in a turn ---

    def write(self, number):
        """Items join, the writer's own leave again; now and then all is merged or learned anew."""
        first = FIRST + self.number * 1_000_000 + number * BATCH
        table = self.folder / f"new-{self.number}.csv"
        world.items(first, BATCH).to_csv(table, index=False)
        roll = self.chance.random()
        done = self.command("add", table, may_be_killed=True)
        self.say(added=first, certain=done)
        if roll < 0.25:
            gone = first - self.chance.randrange(1, 20) * BATCH
            where = f"CAST(id AS INTEGER) >= {gone} AND CAST(id AS INTEGER) < {gone + BATCH}"
            if gone >= FIRST + self.number * 1_000_000:
                ids = [gone + k for k in range(BATCH)]
                self.say(removing=gone)
                if self._all_there(ids) and self.command(
                    "remove", "--yes", "--where", where, may_be_killed=True
                ):
                    self.say(removed=gone)
        elif roll < 0.29:
            self.command("compact", may_be_killed=True)
        elif roll < 0.31:
            self.command("learn", may_be_killed=True)

    def _all_there(self, ids):
        with qkvsearch.open(self.path) as engine:
            return all(item in engine.items for item in ids)

    def record(self, number):
        """One more interaction of somebody new."""
        user = f"recorder{self.number}-{number}"
        if self.command("record", user, 30 + self.chance.randrange(50), 4, may_be_killed=True):
            self.say(recorded=user)
        time.sleep(self.chance.random() * 0.2)

    def read(self, number):
        """A build that is opened answers the same as long as it is open; batches are whole."""
        with qkvsearch.open(self.path) as engine:
            until = min(self.until, time.time() + self.chance.choice([0, 0.2, 2, 15]))
            names = [name for name in QUESTIONS if name not in OF_RECORDS]
            first = {name: world.ask(engine, name) for name in names}
            counted = {}
            ids = [int(one) for one in engine.items.to_frame().reset_index()["id"]]
            for item in ids:
                if item >= FIRST:
                    counted[item // BATCH] = counted.get(item // BATCH, 0) + 1
            if half := {batch: n for batch, n in counted.items() if n != BATCH}:
                raise Fault(f"batches that are not whole: {half}")
            n = 0
            while n == 0 or time.time() < until:
                name = self.chance.choice(names)
                if (found := world.ask(engine, name)) != first[name]:
                    raise Fault(f"{name}: another answer of an open build: {found[:200]}")
                n += 1
                time.sleep(0.02)
        self.say(asked=n + len(names))
        if number % 5 == 0:
            self.command("search", "rain river", "--format", "json")
        if number % 7 == 0:
            self.command("info", "--verify")


def at_once(trial):
    seconds = float(os.environ["FAULTS_MINUTES"]) * 60
    path = copied("segments", trial.folder)
    seed, until = trial.chance.random(), time.time() + seconds
    workers = [Worker(number, path, trial.folder, seed, until) for number in range(5)]
    turns = [Worker.write, Worker.write, Worker.record, Worker.read, Worker.read]
    pids = [worker.run(turn.__get__(worker)) for worker, turn in zip(workers, turns, strict=True)]
    while pids:
        trial.at(len(pids))
        time.sleep(0.5)
        pids = [pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
    said = [_lines(worker.said) for worker in workers]
    trial.counts["seconds at once"] += round(seconds)
    for line in (line for lines in said for line in lines):
        if done := line.get("done"):
            trial.counts[f"{done} at once"] += 1
        trial.counts["questions at once"] += line.get("asked", 0)
    if faults := [line["fault"] for lines in said for line in lines if "fault" in line]:
        raise Fault("; ".join(faults))
    if complaint := verify(path):
        raise Fault(f"at the end: {complaint}")
    nothing_lost(path, [line for lines in said for line in lines])


def nothing_lost(path, said):
    """What was said to be done is there, and what was not may be."""
    with qkvsearch.open(path) as engine:
        ids = {int(one) for one in engine.items.to_frame().reset_index()["id"]}
        users = {str(one) for one in engine.users.to_frame().reset_index()["id"]}
    removing = {line["removing"] for line in said if "removing" in line}
    removed = {line["removed"] for line in said if "removed" in line}
    for line in said:
        if "added" not in line:
            continue
        first = line["added"]
        there = sum(first + k in ids for k in range(BATCH))
        if there not in (0, BATCH):
            raise Fault(f"{there} of {BATCH} items from {first} on are there")
        if line["certain"] and first not in removing and not there:
            raise Fault(f"items from {first} on were added, and are not there")
        if first in removed and there:
            raise Fault(f"items from {first} on were removed, and are there")
    recorded = {line["recorded"] for line in said if "recorded" in line}
    if lost := recorded - users:
        raise Fault(f"{len(lost)} of {len(recorded)} recorded users lost: {sorted(lost)[:3]}")


def _lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
