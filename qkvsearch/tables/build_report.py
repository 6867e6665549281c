"""The report of a build: what became of the files, the rows, the columns and the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qkvsearch._utils.version import __version__
from qkvsearch.errors import Count, quantity
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.column_facts import ColumnFacts
from qkvsearch.tables.column_types.inference import NAMED_BY_ID
from qkvsearch.tables.dataset import Dataset
from qkvsearch.tables.report import EMAIL, ReadReport
from qkvsearch.tables.role_choice import LOG_TYPES
from qkvsearch.terminal import shorten

# The facts of a column that have a name of their own in the report.
TOLD = ("name", "role", "type", "empty", "example", "changed")
# Characters of a cell.
MAX_EXAMPLE = 1000
# Roles of columns that are neither searched nor filtered by.
NEITHER = ("id", "title", "times")


@dataclass(frozen=True)
class SkippedRows:
    """The rows of a file that were skipped for one reason."""

    reason: str
    count: int
    # Some of them, by their numbers in the file.
    rows: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"reason": self.reason, "rows": self.count, "examples": list(self.rows)}


@dataclass(frozen=True)
class FileReport:
    """What became of the rows of a file."""

    file: str
    of_log: bool
    # What is counted: rows of a table, or files that are an item each.
    unit: str
    read: int
    kept: int
    combined: int
    skipped: Sequence[SkippedRows] = ()
    # Which columns play which roles, and why.
    chosen: str = ""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    # All of this as a build prints it.
    lines: Sequence[str] = ()

    @classmethod
    def of(cls, report: ReadReport) -> FileReport:
        skipped = [
            SkippedRows(reason, count, list(map(report.where, report.sample_rows.get(reason, ()))))
            for reason, count in report.skipped.items()
        ]
        notes = [*report.notes]
        for file in report.files:
            notes += [f"{file.file}: {note}" for note in file.notes]
        for file in report.files or [report]:
            if n := Count(file.repaired):
                notes.append(f"{file.file}: {n} {n:line|lines} decoded as {file.encoding}")
        return cls(
            report.file,
            of_log=_is_of_log(report),
            unit=report.unit,
            read=report.read,
            kept=report.kept,
            combined=report.merged,
            skipped=skipped,
            chosen=report.chosen,
            notes=[without_users(note, report.file) for note in notes],
            warnings=[without_users(warning, report.file) for warning in report.warnings],
            lines=report.lines(),
        )

    @property
    def n_skipped(self) -> int:
        return sum(each.count for each in self.skipped)

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "of": "interactions" if self.of_log else "items",
            "unit": self.unit,
            "read": self.read,
            "kept": self.kept,
            "combined": self.combined,
            "skipped": self.n_skipped,
            "reasons": [each.to_dict() for each in self.skipped],
            "columns_chosen": self.chosen,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class ColumnReport:
    """What a column became."""

    # As a build stores it and `info` shows it.
    facts: ColumnFacts
    # How many cells of items, or of the rows of a log, are empty; those that were emptied included.
    empty: int
    # How many cells of the rows are not as they were in the file, and at most three of these.
    changed: int
    examples: Sequence[str] = ()
    searched: bool = False

    @property
    def filtered(self) -> bool:
        """Whether one can filter by it. A text that is searched is no filter; a list or an amount
        that is searched is one.
        """
        is_text = self.facts.role == "text" and self.facts.type == "text"
        return self.facts.role not in (*NEITHER, *LOG_TYPES) and not is_text

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON. Facts that few columns have are in it where they have them."""
        record = self.facts.to_record()
        others = {name: value for name, value in record.items() if name not in TOLD and value}
        return {
            "name": self.facts.name,
            "role": self.facts.role,
            "type": self.facts.type,
            **others,
            "searched": self.searched,
            "filtered": self.filtered,
            "empty": self.empty,
            "example": self.facts.example,
            "changed": self.changed,
            "changes": dict(self.facts.changed),
            "examples": list(self.examples),
        }


@dataclass(frozen=True)
class BuildReport:
    """What an owner reads once and keeps. The printed report of a build, the text, the JSON and the
    page of `build --report` are views of it.
    """

    workspace: str
    # Whether nothing was built.
    planned: bool
    items: int
    # None where there is no log.
    users: int | None
    interactions: int | None
    files: Sequence[FileReport]
    columns: Sequence[ColumnReport]
    log_columns: Sequence[ColumnReport] = ()
    # Columns of text that are not searched, and why.
    unsearched: Mapping[str, str] = field(default_factory=dict)
    # What the build says of its encoder, its languages and its models, or the plan of its memory.
    lines: Sequence[str] = ()

    @classmethod
    def of(
        cls, workspace: str, dataset: Dataset, planned: bool, lines: Sequence[str] = ()
    ) -> BuildReport:
        log, reports = dataset.interactions, dataset.reports
        unsearched: dict[str, str] = {}
        for report in reports:
            unsearched |= report.unsearched
        return cls(
            workspace,
            planned,
            items=len(dataset.catalog),
            users=None if log is None else log.n_users,
            interactions=None if log is None else len(log),
            files=[FileReport.of(report) for report in reports],
            columns=_columns(dataset.catalog, [each for each in reports if not _is_of_log(each)]),
            log_columns=list(_log_columns(reports)),
            unsearched=unsearched,
            lines=lines,
        )

    @property
    def size(self) -> str:
        """How many items, users and interactions there are, in words."""
        size = quantity(self.items, "item")
        if self.users is None or self.interactions is None:
            return size
        users = quantity(self.users, "user")
        return f"{size}, {users}, {quantity(self.interactions, 'interaction')}"

    @property
    def searched(self) -> list[str]:
        """The columns that search reads."""
        return [column.facts.name for column in self.columns if column.searched]

    @property
    def filtered(self) -> list[str]:
        """The columns that one can filter by."""
        return [column.facts.name for column in self.columns if column.filtered]

    @property
    def warnings(self) -> list[str]:
        return [warning for file in self.files for warning in file.warnings]

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "workspace": self.workspace,
            "built": not self.planned,
            "qkvsearch": __version__,
            "items": self.items,
            "users": self.users,
            "interactions": self.interactions,
            "files": [file.to_dict() for file in self.files],
            "columns": [column.to_dict() for column in self.columns],
            "interaction_columns": [column.to_dict() for column in self.log_columns],
            "searched": self.searched,
            "not_searched": dict(self.unsearched),
            "filtered": self.filtered,
            "lines": list(self.lines),
        }


def without_users(text: str, file: str = "") -> str:
    """Return a text without e-mail addresses, but for one in the name of the file."""
    return EMAIL.sub(lambda match: match[0] if match[0] in file else "(e-mail address)", text)


def _is_of_log(report: ReadReport) -> bool:
    return any(column.role in LOG_TYPES for column in report.columns)


def _example(cell: str) -> str:
    """Return a cell as it was, unless it is very long or an e-mail address."""
    return without_users(shorten(cell, MAX_EXAMPLE))


def _columns(catalog: Catalog, reports: Sequence[ReadReport]) -> list[ColumnReport]:
    """Return what the columns of the items became. reports: on their files."""
    changed: dict[str, int] = {}
    examples: dict[str, list[str]] = {}
    for report in reports:
        changed |= report.changed_cells
        examples |= report.examples
    columns = []
    for facts in catalog.columns:
        name = facts.stored or facts.name
        n_named_by_id = facts.changed.get(NAMED_BY_ID, 0)
        column = ColumnReport(
            facts,
            empty=int(catalog.frame[name].isna().sum()),
            changed=changed.get(name, 0) + n_named_by_id,
            examples=list(map(_example, examples.get(name, []))),
            searched=name in catalog.text_columns,
        )
        columns.append(column)
    return columns


def _log_columns(reports: Sequence[ReadReport]) -> Iterator[ColumnReport]:
    """Yield the columns of the interactions. Cells of users are no examples."""
    for report in reports:
        for facts in report.columns:
            if facts.role not in LOG_TYPES:
                continue
            examples = [] if facts.role == "user" else report.examples.get(facts.name, [])
            yield ColumnReport(
                facts,
                empty=report.empty_cells.get(facts.name, 0),
                changed=report.changed_cells.get(facts.name, 0),
                examples=list(map(_example, examples)),
            )
