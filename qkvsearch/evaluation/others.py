"""Somebody else's recommendations, read from a file so that they can be judged beside ours."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from qkvsearch._utils.validation import displayed
from qkvsearch.errors import Count, DataError, QkvError, listed_names
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.tables.columns import find_column
from qkvsearch.tables.dataset import load
from qkvsearch.tables.ids import Ids, identified
from qkvsearch.tables.writers import FORMULA
from qkvsearch.terminal import shorten

if TYPE_CHECKING:
    from qkvsearch.tables.dataset import File

# Files, each named by its own name; or files and frames by the names that the report gives them.
Others: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, File]"

PACKED = re.compile(r"\.(gz|zip|bz2|xz|zst)$", re.IGNORECASE)
ROLES = ("user", "rank", "id")


@dataclass(frozen=True)
class OthersRankings:
    """Somebody else's rankings for the users of an evaluation.

    rankings: rows of items for each user, the best first. An item that the catalog does not have is
    a negative number of its own, and so a miss. notes: on what was left out.
    """

    rankings: list[list[int]]
    notes: list[str]


def named_files(others: Others, taken: Sequence[str]) -> dict[str, File]:
    """Return files by the names that a report gives them: their own, without suffix. taken: names
    of other systems. Raises `QkvError` for a name that would be there twice.
    """
    if isinstance(others, Mapping):
        pairs = [(str(name), file) for name, file in others.items()]
    else:
        files = [others] if isinstance(others, str | os.PathLike) else list(others)
        for file in files:
            if not isinstance(file, str | os.PathLike):
                raise DataError(
                    "`recommendations` must be files, or files and frames by their names, such as "
                    f'{{"theirs": frame}}, not {displayed(file)}'
                )
        pairs = [(name_of(file), file) for file in files]
    by_name: dict[str, File] = {}
    for name, file in pairs:
        if name in taken or name in by_name:
            raise QkvError(
                f"`recommendations`: two systems would be called {shorten(name)!r}: rename the file"
            )
        by_name[name] = file
    return by_name


def name_of(file: str | os.PathLike[str]) -> str:
    """Return the name of a file without its folder and suffix.

    >>> name_of("lists/theirs.csv.gz"), name_of("v1.2.parquet")
    ('theirs', 'v1.2')
    """
    return PurePath(PACKED.sub("", PurePath(file).name)).stem


def read_rankings(
    name: str, source: File, held_out: HeldOutUsers, users: Ids, items: Ids, k: int
) -> OthersRankings:
    """Read recommendations for the users of an evaluation, and judge them as ours are: items that a
    user had before are left out, and the k best of the others count.

    source: has the columns user, rank and id, as `recommend --all-users` writes them. Raises
    `DataError` for other columns, and for a rank that is no number.
    """
    table, report = load(source, name)
    report.require_rows()
    frame = _with_roles(table.frame(), report.file)
    is_whole = frame.notna().all(axis=1)
    report.skip("without a user, a rank or an id", frame.index[~is_whole])
    frame = frame[is_whole]
    ranks = pd.to_numeric(frame["rank"].str.strip(), errors="coerce")
    if bad := frame.index[~np.isfinite(ranks)].tolist():
        cell = shorten(frame["rank"][bad[0]])
        raise DataError(f"{report.file}, row {report.where(bad[0])}: rank {cell!r} is no number")
    rows = pd.DataFrame(
        {
            "user": _rows_of(frame["user"], users),
            "rank": ranks.to_numpy(),
            "item": _rows_of(frame["id"], items),
            "text": frame["id"].to_numpy(),
        }
    )
    rows = rows[rows["user"].isin(held_out.users)]
    # Each unknown item has a negative number of its own.
    of_text = -1 - pd.factorize(rows["text"])[0]
    rows = rows.assign(item=np.where(rows["item"] < 0, of_text, rows["item"]))
    rows = rows.sort_values(["user", "rank"], kind="stable")
    repeated = rows.duplicated(["user", "item"])
    place = pd.Series(np.arange(len(held_out.users)), held_out.users)
    rows = rows[~repeated].assign(place=lambda left: place[left["user"]].to_numpy())
    is_seen = _seen(held_out, rows)
    rows = rows[~is_seen]
    rankings: list[list[int]] = [[] for _ in held_out.users]
    for at, of_user in rows.groupby("place"):
        rankings[at] = of_user["item"].tolist()[:k]
    notes = [f"{report}."] if report.skipped else []
    notes += _notes(
        name,
        n_without=sum(not ranking for ranking in rankings),
        n_seen=int(is_seen.sum()),
        n_unknown=int((rows["item"] < 0).sum()),
        n_repeated=int(repeated.sum()),
        n_tied=int(rows.duplicated(["user", "rank"]).sum()),
    )
    return OthersRankings(rankings, notes)


def _with_roles(frame: pd.DataFrame, file: str) -> pd.DataFrame:
    """Return the columns user, rank and id by these names."""
    names = list(map(str, frame.columns))
    exact = {name.casefold().strip(): name for name in reversed(names)}
    columns = {role: exact.get(role) for role in ROLES}
    columns["user"] = columns["user"] or find_column("user", None, names, file)
    columns["id"] = columns["id"] or find_column("item", None, names, file)
    missing = [role for role, name in columns.items() if name is None]
    if missing:
        raise DataError(
            f"{file}: no column {listed_names(missing)}; recommendations have the columns user, "
            f"rank and id, as recommend --all-users writes them (columns: {listed_names(names)})"
        )
    return pd.DataFrame({role: frame[name] for role, name in columns.items()})


def _rows_of(cells: pd.Series, ids: Ids) -> np.ndarray:
    """Return the row of each id, −1 for an unknown one. A text that was guarded against
    spreadsheets, with an apostrophe before it, is read without it.
    """
    codes, texts = pd.factorize(cells)
    counts = np.bincount(codes, minlength=len(texts))
    rows, _ = identified(np.asarray(texts, dtype=object), counts, ids)
    guarded = [text.startswith("'") and bool(FORMULA.match(text[1:])) for text in texts]
    for code in np.flatnonzero((rows < 0) & np.array(guarded, dtype=bool)):
        rows[code] = ids.find(texts[code][1:])
    return np.asarray(rows)[codes]


def _seen(held_out: HeldOutUsers, rows: pd.DataFrame) -> np.ndarray:
    """Return which rows recommend an item that the user had before, bool."""
    n_items = held_out.seen.shape[1]
    users, items = held_out.seen.nonzero()
    had = users.astype(np.int64) * n_items + items
    pairs = rows["place"].to_numpy(np.int64) * n_items + rows["item"].to_numpy(np.int64)
    return np.asarray(np.isin(pairs, had) & (rows["item"] >= 0).to_numpy())


def _notes(
    name: str, n_without: int, n_seen: int, n_unknown: int, n_repeated: int, n_tied: int
) -> list[str]:
    """Return sentences about what does not count as it stands in the file."""
    of_items = "{n} {n:recommendation is of an item|recommendations are of items}"
    said = [
        (n_without, "{n} {n:user has|users have} no recommendations, which counts as 0"),
        (n_seen, of_items + " that the user had before, and left out"),
        (n_unknown, of_items + " that the catalog does not have, and {n:a miss|misses}"),
        (n_repeated, of_items + " that the user has at a better rank, and left out"),
        (n_tied, "{n} {n:has|have} the rank of another one, and the order of the file counts"),
    ]
    sentences = [text.format(n=Count(n)) for n, text in said if n]
    return [f"{name}: {'; '.join(sentences)}."] if sentences else []
