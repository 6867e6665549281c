"""The figures of a run: printed, kept as JSON lines, and shown in docs/trust.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.support.results import RESULTS, Run
from benchmarks.support.tables import distinct, markdown
from tests.faults.runner import Outcome

KEPT = RESULTS / "faults.jsonl"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "trust.md"
MARKERS = "<!-- faults -->", "<!-- end of faults -->"
# Of each part: what it does, and which of its counts come first.
SHOWN = {
    "kills": ("a command that writes is killed", ["kills", "records told of"]),
    "damage": (
        "a file is damaged",
        ["damaged files", "damaged bytes", "answers as ever", "answers refused", "writes done",
         "writes refused", "repairs", "repairs that say what cannot be"],
    ),
    "full-disk": ("a disk is full", ["writes without room", "small disks"]),
    "clock": ("the clock jumps", ["commands by a clock that jumps"]),
    "at-once": (
        "two writers, a recorder and two readers at once",
        ["seconds at once", "add at once", "record at once", "killed at once", "questions at once"],
    ),
    "fuzz-where": ("conditions of `--where`", ["inputs", "refused"]),
    "fuzz-tables": ("tables to be read", ["inputs", "refused"]),
    "fuzz-signed": ("signed files with changed bytes", ["inputs", "refused"]),
    "fuzz-stored": ("manifests, arrays, catalogs, signed again", ["inputs", "refused"]),
    "fuzz-models": ("model folders", ["inputs", "refused"]),
    "fuzz-methods": ("arguments of an engine's questions", ["inputs", "refused"]),
    "fuzz-writes": ("arguments of what writes", ["inputs", "refused"]),
    "fuzz-commands": ("command lines", ["inputs", "refused"]),
}  # fmt: skip


def summary(outcome: Outcome) -> str:
    counted = ", ".join(f"{n:,} {name}" for name, n in sorted(outcome.counts.items()))
    skipped = "; ".join(sorted(outcome.skipped))
    return (
        f"  {outcome.name}: {outcome.trials:,} trials in {outcome.seconds:.0f} s: {counted}; "
        f"{len(outcome.faults)} faults{'; ' if skipped else ''}{skipped}"
    )


def keep(outcomes: Sequence[Outcome], seed: int, share: float) -> None:
    """The figures of these parts take the place of those that there were."""
    kept = {row["part"]: row for row in read()}
    run = asdict(Run.here(["xxhash"]))
    for outcome in outcomes:
        kept[outcome.name] = {
            "part": outcome.name,
            "trials": outcome.trials,
            "minutes": round(outcome.seconds / 60, 1),
            "counts": dict(sorted(outcome.counts.items())),
            "faults": outcome.faults,
            "skipped": sorted(outcome.skipped),
            "seed": seed,
            "share": share,
            **run,
        }
    rows = [kept[name] for name in SHOWN if name in kept]
    KEPT.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


def read() -> list[dict[str, Any]]:
    lines = KEPT.read_text("utf-8").splitlines() if KEPT.is_file() else []
    return [json.loads(line) for line in lines]


def page(text: str) -> str:
    """docs/trust.md with its table made anew; what stands around it is written by hand."""
    start, end = MARKERS
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n\n{table(read())}\n\n{end}{after}"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line a part, and when and where it was run."""
    if not rows:
        return "No run yet."
    lines = []
    for row in rows:
        about, names = SHOWN[row["part"]]
        counts = {name: row["counts"][name] for name in names if name in row["counts"]}
        done = ", ".join(f"{n:,} {name}" for name, n in counts.items())
        lines.append([about, done, f"{row['minutes']:.1f}", str(len(row["faults"]))])
    found = [f"- {fault[:300]}" for row in rows for fault in row["faults"]]
    skipped = [f"- Left out: {name.removeprefix('skipped: ')}" for name in skipped_of(rows)]
    parts = [
        sums(rows),
        markdown(["what is done", "how often", "minutes", "faults"], lines, n_names=2),
        "\n".join([*found, *skipped]),
        "; ".join(distinct(map(_described, rows))) + ".",
    ]
    return "\n\n".join(part for part in parts if part)


def sums(rows: Sequence[dict[str, Any]]) -> str:
    """The figures that the suite is there for."""

    def count(name: str, part: str = "") -> int:
        return sum(row["counts"].get(name, 0) for row in rows if row["part"].startswith(part))

    inputs, faults = count("inputs", "fuzz"), sum(len(row["faults"]) for row in rows)
    return (
        f"**{count('kills'):,}** kills, **{count('damaged bytes'):,}** damaged bytes in "
        f"**{count('damaged files'):,}** files, **{inputs:,}** fuzzed inputs, "
        f"**{count('seconds at once') / 60:.0f}** minutes of writers and readers at once: "
        f"**{faults}** faults found."
    )


def skipped_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    return distinct(name for row in rows for name in row["skipped"])


def _described(row: dict[str, Any]) -> str:
    share = "" if row["share"] == 1 else f", {row['share']:.0%} of a full run"
    versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
    machine = f"{row['cores']} cores of {row['cpu']}"
    return f"Seed {row['seed']}{share}, {row['date']}, {machine}; {versions}"
