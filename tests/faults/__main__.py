"""`python -m tests.faults`: runs the parts, prints what they found, and keeps the figures.

python -m tests.faults [--seed N] [--share .01] [--only PART[:TRIAL]] [--keep]
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.faults import operations
from tests.faults.parts import PARTS, prepared
from tests.faults.report import keep, summary
from tests.faults.runner import Outcome, run_part


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="another one draws other faults")
    parser.add_argument("--share", type=float, default=1.0, help="of a full run, such as .01")
    parser.add_argument("--only", action="append", metavar="PART[:TRIAL]", help="may be repeated")
    parser.add_argument("--most-faults", type=int, default=50, help="end a part after so many")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/trust.md")
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
    if chosen.keep:
        keep(outcomes, chosen.seed, chosen.share)
    return 1 if any(outcome.faults for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
