"""Disks that are full: files may not grow past a limit, or a small disk has no room left."""

import resource
import shutil
import subprocess
import sys
from functools import cache

from tests.faults import children, world
from tests.faults.kills import check
from tests.faults.operations import OPERATIONS, Effect, cases, effect
from tests.faults.runner import Fault
from tests.faults.world import copied

# Of so many trials one takes a small disk of its own, where the system allows to mount one.
MOUNTED_EVERY = 4
# In a mount namespace of its own, which takes the disk with it: makes a disk, copies the workspace
# to it, leaves so much room, runs a command, asks a question, and copies the workspace back.
ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=$SIZE small "$DISK"
cp -r "$WORKSPACE" "$DISK/$NAME"
set +e
"$PYTHON" -m qkvsearch -q -w "$DISK/$NAME" "$@" 2>"$OUT/stderr" </dev/null
echo $? >"$OUT/code"
dd if=/dev/zero of="$DISK/filler" bs=4096 2>/dev/null
"$PYTHON" -m qkvsearch -q -w "$DISK/$NAME" search rain >"$OUT/answer" 2>"$OUT/asked" </dev/null
echo $? >"$OUT/answered"
rm "$DISK/filler"
cp -r "$DISK/$NAME" "$OUT/$NAME"
"""


@cache
def may_mount():
    """Whether this system lets us mount a disk that lives in memory, in a namespace of our own."""
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k small /mnt"]
    return subprocess.run(words, capture_output=True).returncode == 0


def full_disk(trial):
    known = cases()
    world_name, operation = known[trial.number % len(known)]
    found = effect(world_name, operation)
    assert found
    path = copied(world_name, trial.folder)
    if trial.number % MOUNTED_EVERY == 0:
        if may_mount():
            return small_disk(trial, path, world_name, operation, found)
        trial.counts["skipped: a small disk, which this system does not let us mount"] += 1
    limit = trial.chance.choice(
        [0, 1 << trial.chance.randrange(18), trial.chance.randrange(200_000)]
    )
    ran = children.command(path, OPERATIONS[operation](), set_up=lambda: _limit(limit))
    said = f"{operation} on {world_name}, no file over {limit} bytes"
    judge(trial, path, found, ran, said)


def _limit(size):
    """A write past this size of a file is an error. What the process says of it goes to a pipe."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def small_disk(trial, path, world_name, operation, found):
    size = sum(-(-file.stat().st_size // 4096) * 4096 for file in path.rglob("*"))
    spare = trial.chance.choice([0, 4096, trial.chance.randrange(1 << 20)])
    disk, out = trial.folder / "disk", trial.folder / "out"
    disk.mkdir()
    out.mkdir()
    environment = {
        "NAME": path.name, "SIZE": str(size + 200_000 + spare), "DISK": str(disk), "OUT": str(out),
        "WORKSPACE": str(path), "PYTHON": sys.executable, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": str(children.ROOT), "HOME": str(trial.folder), "PYTHONUTF8": "1",
        "NUMBA_CACHE_DIR": str(trial.folder),
    }  # fmt: skip
    arguments = [str(word) for word in OPERATIONS[operation]()]
    words = ["unshare", "-rm", "sh", "-c", ON_A_SMALL_DISK, "sh", *arguments]
    done = subprocess.run(words, capture_output=True, env=environment, timeout=120)
    said = f"{operation} on {world_name}, a disk with {spare} bytes left"
    if done.returncode:
        raise Fault(f"{said}: {done.stderr.decode()[-300:]}")
    trial.counts["small disks"] += 1
    stderr = (out / "stderr").read_text()
    code = int((out / "code").read_text())
    judge(trial, out / path.name, found, children.Ran(code, stderr, 0.0), said)
    nothing = found.before is world.NOTHING
    if not nothing and (out / "answered").read_text().strip() != "0":
        raise Fault(f"{said}: cannot be searched: {(out / 'asked').read_text()[-300:]}")


def judge(trial, path, found, ran, said):
    """The command did all, or says that it did not, and nothing has changed."""
    trial.counts["writes without room"] += 1
    if ran.code not in (0, 1) or "Traceback" in ran.stderr:
        raise Fault(f"{said}: exit {ran.code}: {ran.last_line}")
    if ran.code == 0:
        trial.counts["that had room enough"] += 1
        check(path, found, said, acknowledged=True)
    else:
        if not ran.stderr.startswith("Error: "):
            raise Fault(f"{said}: no error of ours: {ran.last_line}")
        check(path, Effect(found.before, found.before, 0, 0), said, acknowledged=False)
    # With room again, the same command works.
    if ran.code == 1:
        again = children.command(path, OPERATIONS[said.partition(" on ")[0]]())
        if again.code:
            raise Fault(f"{said}: with room again: exit {again.code}: {again.last_line}")
        check(path, found, f"{said}, then with room", acknowledged=True)
