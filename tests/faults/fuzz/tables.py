"""Tables of every kind that is read, messy and hostile ones, many with changed bytes."""

import os
import resource

from qkvsearch.tables.columns import Columns
from qkvsearch.tables.sources import read_source
from tests.faults import fuzz
from tests.faults.runner import Fault
from tests.tables.messy import HEADERS, messy_table

# Bytes that reading a table may take, beside what a process has anyway.
MEMORY = 3 << 30
ROLES = ("id", "title", "user", "item", "rating", "time")
# What a template of Python makes of a text from a file.
EVALUATED = ("<class", "mappingproxy")


def table(chance):
    """The name of a file, its bytes, and what else a build is told."""
    name, content = messy_table(chance.randrange(1 << 32))
    if chance.random() < 0.35:
        content = fuzz.changed_bytes(content, chance)
    told = {}
    if chance.random() < 0.2:
        told[chance.choice(ROLES)] = chance.choice(chance.choice(HEADERS).split(" "))
    if chance.random() < 0.1:
        told["delimiter"] = chance.choice([",", ";", "\t", "|", "::", " ", "a", ""])
    return name, content, Columns(**told)  # type: ignore[arg-type]


def fuzz_tables(trial):
    """A file is read whole, or refused by an error that says what and where."""
    os.environ["QKVSEARCH_MAX_UNPACKED"] = "20_000_000"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def use(made):
        name, content, columns = made
        (trial.folder / name).write_bytes(content)
        dataset = read_source(trial.folder / name, columns=columns)
        shown = "\n".join(line for report in dataset.reports for line in report.lines())
        if any(text in shown for text in EVALUATED) or len(shown) > 100_000:
            raise Fault(f"a report of {len(shown):,} characters: {shown[:200]!r}")

    fuzz.inputs(trial, table, use, most=700)
