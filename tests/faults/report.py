"""The figures of a run: printed, kept as JSON lines, and shown in docs/trust.md."""

from __future__ import annotations

from tests.faults.runner import Outcome


def summary(outcome: Outcome) -> str:
    counted = ", ".join(f"{n:,} {name}" for name, n in sorted(outcome.counts.items()))
    skipped = "; ".join(sorted(outcome.skipped))
    return (
        f"  {outcome.name}: {outcome.trials:,} trials in {outcome.seconds:.0f} s: {counted}; "
        f"{len(outcome.faults)} faults{'; ' if skipped else ''}{skipped}"
    )


def keep(outcomes: list[Outcome], seed: int, share: float) -> None:
    raise SystemExit("not yet")
