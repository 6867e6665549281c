"""What a build will take, before anything is read: memory, disk and time, and where to run it.

The formulas are those of docs/scale.md, and `benchmarks/claims/one_machine.py` measures them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qkvsearch.collaborative.als import LARGE_EMBEDDINGS
from qkvsearch.data.columns.names import named
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.data.readers import Dataset

# --- bytes ---

# Python, its libraries and compiled code.
PROCESS = 350e6
# Of a row while a log is read: two columns of ids as they are in the file (8) and by number twice
# (16), the rows in the order of their users (4), which are usable (1).
ROW_READ, COLUMN_READ = 29, 24
# Of a pair while preferences are learned: by user (4 + 4) and by item (4); where confidences
# differ, those of both orders and the numbers that they come from.
PAIR_LEARNED, CONFIDENCE = 12, 16
# Of a user: an id in Python, twice, and in a table that finds it.
USER = 420
# Of a component of an embedding: the users' are learned, and kept at length 1; the items' are
# learned, summed up in 64 bits, and kept twice.
USER_NUMBER, ITEM_NUMBER = 8, 20
# Of an item, and of a byte of its texts, while they are read and weighed.
ITEM, TEXT_BYTE = 2_500, 20
# On disk, of a pair, of each further column, of a user and of an item beside their embeddings.
PAIR_STORED, COLUMN_STORED, USER_STORED, ITEM_STORED, TEXT_STORED = 4, 6, 45, 700, 4
# In files without names, while a log is read and learned from.
ROW_SCRATCH = 36

# --- seconds of one core ---

PER_ROW, PER_PAIR_ITERATION, PER_USER, PER_ITEM, PER_TEXT_BYTE = 5e-7, 1.4e-7, 6e-5, 8e-5, 1e-6
START = 3.0

N_COMPONENTS, ITERATIONS = 64, 10
# How wide the keys of the heads that an encoder gives are together, in numbers of 32 bits; auto is
# taken for static, for minilm is its choice for what takes a minute.
KEYS = {"corpus": 256, "static": 512, "minilm": 640, "auto": 512}
# What nobody told: how many interactions a user has, and bytes of a text.
INTERACTIONS_A_USER, BYTES_A_TEXT = 20, 100
# How much of a file of text tells how long its lines are.
SAMPLE = 1 << 20
# Of a machine's memory, what a build may take.
SHARE = 0.8


@dataclass(frozen=True)
class Size:
    """How much there is to build from. n_columns: ratings, weights and times, as far as there are
    any. text_bytes: of all items. guessed: what is not known, in words.
    """

    n_items: int = 0
    n_users: int = 0
    n_interactions: int = 0
    n_columns: int = 0
    text_bytes: int = 0
    guessed: tuple[str, ...] = ()

    def told(self, **counts: int | None) -> Size:
        """With these numbers where they are given, and what else follows from them."""
        given = {name: count for name, count in counts.items() if count is not None}
        found = replace(self, **given, guessed=tuple(g for g in self.guessed if g not in given))
        guessed = list(found.guessed)
        if found.n_interactions and not found.n_users:
            found = replace(found, n_users=-(-found.n_interactions // INTERACTIONS_A_USER))
            guessed.append("n_users")
        if found.n_items and not found.text_bytes:
            found = replace(found, text_bytes=found.n_items * BYTES_A_TEXT)
            guessed.append("text_bytes")
        return replace(found, guessed=tuple(dict.fromkeys(guessed)))

    def __str__(self) -> str:
        counted = [quantity(self.n_items, "item")]
        if self.n_interactions:
            counted += [
                quantity(self.n_users, "user"), quantity(self.n_interactions, "interaction")
            ]  # fmt: skip
        about = f" ({', '.join(self.guessed)} assumed)" if self.guessed else ""
        return ", ".join(counted) + about.replace("n_", "").replace("text_bytes", "texts")


@dataclass(frozen=True)
class Estimate:
    """memory: bytes at the most, in this or that step. mapped: as much of them is in files, which
    the system may keep in memory or not. stored, scratch: bytes on disk, of the workspace and while
    it is built. seconds: on `cores`.
    """

    size: Size
    steps: Mapping[str, float]
    mapped: float
    stored: float
    scratch: float
    seconds: float
    cores: int

    @property
    def memory(self) -> float:
        return max(self.steps.values())

    def lines(self) -> list[str]:
        """For a person, with what is advised on this machine."""
        step = max(self.steps, key=lambda name: self.steps[name])
        return [
            f"Estimated for {self.size}:",
            f"  memory   {_bytes(self.memory)} at the most, while {step}; {_bytes(self.mapped)} of "
            "it may be on disk instead",
            f"  disk     {_bytes(self.stored)} for the workspace, and {_bytes(self.scratch)} while "
            "it is built",
            f"  time     {_minutes(self.seconds)} on {quantity(self.cores, 'core')}",
            f"  advised  {self.advice(memory_of_machine())}",
        ]

    def advice(self, memory: float | None) -> str:
        """Where to run it. memory: bytes of this machine, None where nobody knows."""
        if memory is None or self.memory <= SHARE * memory:
            return "this machine"
        if self.memory - self.mapped <= SHARE * memory:
            return (
                f"this machine, slower: it has {_bytes(memory)} of memory; or --engine spark, see "
                "docs/scale.md"
            )
        of_texts = self.memory == self.steps["texts are read"]
        where = "--keys milvus:URI" if of_texts else "--engine spark"
        return f"{where}: this machine has {_bytes(memory)} of memory; see docs/scale.md"


def estimate(size: Size, encoder: str = "auto", cores: int | None = None) -> Estimate:
    """Of a build of so much, by the default settings.

    >>> found = estimate(Size(60_000, 1_000_000, 100_000_000, text_bytes=600_000), "corpus", 2)
    >>> found.memory < 6e9, found.advice(24e9)
    (True, 'this machine')
    """
    cores = cores or os.cpu_count() or 1
    rows, users, items = size.n_interactions, size.n_users, size.n_items
    extra, keys = size.n_columns * COLUMN_READ, 4 * KEYS.get(encoder, max(KEYS.values())) * items
    confidence = CONFIDENCE if size.n_columns else 0
    numbers = N_COMPONENTS * (USER_NUMBER * users + ITEM_NUMBER * items)
    steps = {
        "texts are read": PROCESS + ITEM * items + TEXT_BYTE * size.text_bytes + 2 * keys,
        "the log is read": PROCESS + (ROW_READ + extra) * rows + USER * users,
        "preferences are learned": PROCESS
        + (PAIR_LEARNED + confidence) * rows
        + numbers
        + USER * users,
    }
    if not rows:
        steps = {"texts are read": steps["texts are read"]}
    most = max(steps, key=lambda name: steps[name])
    mapped = {
        "texts are read": keys,
        "the log is read": (ROW_READ + extra) * rows,
        "preferences are learned": (PAIR_LEARNED + confidence) * rows
        + numbers * (1 if users * 4 * N_COMPONENTS >= LARGE_EMBEDDINGS else 0.5),
    }[most]
    stored = (PAIR_STORED + COLUMN_STORED * size.n_columns) * rows + keys
    stored += (USER_STORED + 4 * N_COMPONENTS) * users
    stored += (ITEM_STORED + 8 * N_COMPONENTS * bool(rows)) * items + TEXT_STORED * size.text_bytes
    work = PER_ROW * rows + PER_USER * users + PER_ITEM * items + PER_TEXT_BYTE * size.text_bytes
    learning = ITERATIONS * PER_PAIR_ITERATION * rows / cores
    scratch = (ROW_SCRATCH + extra) * rows + numbers
    return Estimate(size, steps, mapped, stored, scratch, START + work + learning, cores)


def size_of_files(source: str | None, items: str | None, interactions: str | None) -> Size:
    """What files tell of their size without being read: Parquet at its end, text by its first
    lines; 0 for what tells nothing. source: a log where it has users, else a catalog.
    """
    if source is not None:
        is_log = interactions is None and bool(named("user", _rows_of(source)[2]))
        items, interactions = (items, source) if is_log else (source, interactions)
    size, guessed = Size(), []
    if items is not None:
        n_items, text_bytes, _ = _rows_of(items)
        size = replace(size, n_items=n_items, text_bytes=text_bytes)
    if interactions is not None:
        n_rows, _, names = _rows_of(interactions)
        users = _distinct(interactions, "user") if n_rows else 0
        of_items = 0 if items is not None else _distinct(interactions, "item")
        columns = sum(bool(named(role, names)) for role in ("rating", "weight", "time"))
        size = replace(size, n_interactions=n_rows, n_users=min(users, n_rows), n_columns=columns)
        if of_items:
            size = replace(size, n_items=min(of_items, n_rows))
            guessed.append("n_items")
    return replace(size, guessed=tuple(guessed)).told()


def size_of_dataset(dataset: Dataset) -> Size:
    """Of what was read."""
    log = dataset.interactions
    size = Size(
        n_items=len(dataset.catalog),
        text_bytes=sum(len(text) for column in dataset.catalog.fields() for text in column),
    )
    if log is None:
        return size
    if isinstance(log, Interactions):
        columns = sum(column is not None for column in (log.ratings, log.weights, log.times))
    else:
        columns = len(log.arrays)
    users, pairs = len(log.user_ids), len(log)
    return replace(size, n_users=users, n_interactions=pairs, n_columns=columns)


def memory_of_machine() -> float | None:
    """Bytes; None where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _rows_of(source: str) -> tuple[int, int, list[str]]:
    """How many rows, how many bytes in them, and the names of the columns; nothing where the
    file tells none of it.
    """
    from qkvsearch.data.files.delimited import DELIMITERS

    path = Path(source)
    try:
        with path.open("rb") as file:
            start = file.read(SAMPLE)
        if start[:4] == b"PAR1":
            import pyarrow.parquet

            about = pyarrow.parquet.read_metadata(path)
            size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
            return about.num_rows, size, about.schema.to_arrow_schema().names
        lines = start.decode().splitlines()
    except (ImportError, OSError, ValueError):
        return 0, 0, []
    size = path.stat().st_size
    if len(lines) < 2 or start[:1] in (b"{", b"["):
        return 0, 0, []
    delimiter = max(DELIMITERS, key=lines[0].count)
    n_rows = round(size / (len(start) / len(lines))) - 1
    return n_rows, size, [name.strip('" ') for name in lines[0].split(delimiter)]


def _distinct(source: str, role: str) -> int:
    """At most so many users or items are in a Parquet file, by the least and the greatest number of
    their column; 0 where nothing tells.
    """
    try:
        import pyarrow.parquet

        about = pyarrow.parquet.read_metadata(source)
    except (ImportError, OSError, ValueError):
        return 0
    names = about.schema.to_arrow_schema().names
    places = [names.index(name) for name in named(role, names)[:1]]
    spans = [
        about.row_group(i).column(place).statistics
        for i in range(about.num_row_groups)
        for place in places
    ]
    if not spans or any(
        s is None or not s.has_min_max or not isinstance(s.min, int) for s in spans
    ):
        return 0
    return int(max(s.max for s in spans) - min(s.min for s in spans) + 1)


def _bytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e8 else f"{max(number / 1e6, 1):.0f} MB"


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
