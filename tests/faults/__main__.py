"""`python -m tests.faults`: runs the parts and prints what they found.

python -m tests.faults [--seed N] [--share .01] [--only PART[:TRIAL]]
"""

import argparse
import os
import sys

from tests.faults import operations
from tests.faults.parts import PARTS, prepared
from tests.faults.runner import Outcome, run_part


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="another one draws other faults")
    parser.add_argument("--share", type=float, default=1.0, help="of a full run, such as .01")
    parser.add_argument("--only", action="append", metavar="PART[:TRIAL]", help="may be repeated")
    parser.add_argument("--most-faults", type=int, default=50, help="end a part after so many")
    chosen = parser.parse_args()
    named = [name.partition(":") for name in chosen.only or PARTS]
    if unknown := {name for name, _, _ in named} - set(PARTS):
        parser.error(f"no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    os.environ.setdefault("FAULTS_MINUTES", str(max(0.3, 10 * chosen.share)))
    prepared()
    outcomes = [Outcome("commands", faults=operations.broken)] if operations.broken else []
    for fault in operations.broken:
        print("  FAULT", fault)
    for name, _, number in named:
        part = PARTS[name]
        numbers = (
            [int(number)]
            if number
            else range(min(part.trials, max(2, round(part.trials * chosen.share))))
        )
        print(f"# {name}: {len(numbers)} trials", flush=True)
        outcome = run_part(part, list(numbers), chosen.seed, chosen.most_faults)
        outcomes.append(outcome)
        print(summary(outcome), flush=True)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def summary(outcome):
    counted = ", ".join(f"{n:,} {name}" for name, n in sorted(outcome.counts.items()))
    skipped = "; ".join(sorted(outcome.skipped))
    return (
        f"  {outcome.name}: {outcome.trials:,} trials in {outcome.seconds:.0f} s: {counted}; "
        f"{len(outcome.faults)} faults{'; ' if skipped else ''}{skipped}"
    )


if __name__ == "__main__":
    sys.exit(main())
