"""Run the claims, keep their rows in benchmarks/results, and write them into the documentation.

QKVSEARCH_DATA=data python benchmarks [--only NAME[:PART] …] [--no-times] [--list]

Every script runs in a process of its own. `--only` runs those that are named, also of `defaults/`;
the results of the others stay. Peers: pip install '.[bench]'.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CLAIMS = [path.stem for path in sorted((FOLDER / "claims").glob("*.py"))]
DEFAULTS = [path.stem for path in sorted((FOLDER / "defaults").glob("*.py"))]


def run(module: str, *arguments: str) -> int:
    """Run a module of this folder in a process. Return its exit code."""
    paths = [str(FOLDER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    return subprocess.run(command, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME[:PART]",
        help="one script, or a part of it; may be repeated",
    )
    parser.add_argument(
        "--no-times",
        action="store_true",
        help="keep the qualities alone, which a busy machine has too",
    )
    parser.add_argument("--list", action="store_true", help="list the scripts")
    chosen = parser.parse_args()
    if chosen.list:
        print("claims:", *CLAIMS, "\ndefaults:", *DEFAULTS)
        return 0
    if not os.environ.get("QKVSEARCH_DATA"):  # before minutes are spent
        parser.error("set QKVSEARCH_DATA to the folder that holds ml-100k, ml-1m, ted, …")
    named = [name.partition(":") for name in chosen.only or CLAIMS]
    for name, _, _ in named:
        if name not in [*CLAIMS, *DEFAULTS]:
            parser.error(f"no script {name!r}; there are {', '.join([*CLAIMS, *DEFAULTS])}")
    failed = []
    for name, _, part in named:
        print(f"# {name}", flush=True)
        module = f"{'claims' if name in CLAIMS else 'defaults'}.{name}"
        arguments = [part] if part else []
        if chosen.no_times:
            arguments.append("--no-times")
        if run(module, *arguments):
            failed.append(name)
    if failed:
        print(f"failed, their former results stay: {', '.join(failed)}", file=sys.stderr)
    return run("figures") or bool(failed)


if __name__ == "__main__":
    sys.exit(main())
