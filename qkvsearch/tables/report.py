"""Reports on the rows of a file: kept, merged and skipped ones add up to those read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qkvsearch.errors import Count, DataError, quantity
from qkvsearch.tables.advice import about_documents
from qkvsearch.tables.column_facts import MAX_EXAMPLES, ROLES, ColumnFacts

# The rows of the second of several files are numbered from this number on, and so forth.
FILE_ROWS = 1 << 40
# Of more files, those without anything to report are only counted.
MAX_FILES = 10
# A larger share of skipped rows is a warning.
MAX_SKIPPED = 0.1
# Why rows are skipped that have more cells than the header.
TOO_MANY_COLUMNS = "with too many columns"
# What no message and no build repeats from a cell or a line above the table: it may be a user.
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")


@dataclass
class ReadReport:
    """The rows of a file, or of `files`: each is kept, merged into another one, or skipped.

    >>> report = ReadReport("watches.csv", read=10, merged=2, repaired=1)
    >>> report.skip("without a user", [4, 7, 8])
    >>> report.kept, str(report)
    (5, 'watches.csv: 10 rows read: 5 kept, 2 duplicates combined, 3 skipped (3 without a user,
    first row 4); 1 line decoded as Windows-1252')
    """

    file: str
    # Rows, without those above the header.
    read: int = 0
    merged: int = 0
    # Lines that are not UTF-8 and were read as `encoding`, whether their rows were kept or not.
    repaired: int = 0
    # Rows, by the reason.
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    columns: list[ColumnFacts] = field(default_factory=list)
    # Which columns play which roles, and why.
    chosen: str = ""
    # What a person has to know before they trust the result.
    warnings: list[str] = field(default_factory=list)
    # For each reason to skip rows, the first of them, and the first few.
    first_rows: dict[str, Any] = field(default_factory=dict)
    sample_rows: dict[str, list[int]] = field(default_factory=dict)
    # By column (of a catalog, by its name in the workspace): how many cells of a log are empty, how
    # many cells were changed, and some of these as they were.
    empty_cells: dict[str, int] = field(default_factory=dict)
    changed_cells: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    # Columns of text that are not searched, and why.
    unsearched: dict[str, str] = field(default_factory=dict)
    # For each column with lists or objects, the first row that has one.
    nested: dict[str, Any] = field(default_factory=dict)
    # Columns of which each cell is a list, made of a list of objects.
    lists: set[str] = field(default_factory=set)
    # The text above the table that was left out.
    above: str = ""
    # By column: how many entries of lists had the sign that is between entries.
    separators: Counter[str] = field(default_factory=Counter)
    # How many skipped rows the options say to skip.
    intended: int = 0
    # The rows of a text, those without a cell and those with too many included.
    n_lines: int = 0
    encoding: str = "Windows-1252"
    files: list[ReadReport] = field(default_factory=list)
    # Columns that one of `files` does not have, and the file.
    lacking: dict[str, str] = field(default_factory=dict)
    # The scale of the ratings is what the ratings say, and nobody declared it.
    scale_inferred: bool = False
    # What is counted: rows of a table, or files that are an item each.
    unit: str = "row"
    # The types that columns have by the format of the file.
    types: dict[str, str] = field(default_factory=dict)
    # The ids of items whose file is there and cannot be read.
    unread_ids: list[str] = field(default_factory=list)
    # By the id of each item that is a file: the ids that it may have, by the files beside it.
    possible_ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # The columns of a table that files beside it gave: texts, their times and what else they say.
    of_texts: list[str] = field(default_factory=list)

    @classmethod
    def of_files(cls, files: Sequence[ReadReport], names: Sequence[Set[str]]) -> ReadReport:
        """Join the reports on several files. names: the columns of each."""
        report = cls(f"{files[0].file} and {len(files) - 1} more", files=list(files))
        for number, (file, own) in enumerate(zip(files, names, strict=True)):
            report.read += file.read
            report.skipped += file.skipped
            report.warnings += file.warnings
            report.types |= file.types
            report.unread_ids += file.unread_ids
            report.possible_ids |= file.possible_ids
            for reason, row in file.first_rows.items():
                report.first_rows.setdefault(reason, row + number * FILE_ROWS)
            for reason, rows in file.sample_rows.items():
                report._sample(reason, [row + number * FILE_ROWS for row in rows])
            for column, row in file.nested.items():
                report.nested.setdefault(column, row + number * FILE_ROWS)
            if lacking := sorted(set().union(*names) - own):
                file.notes.append(f"no column {', '.join(lacking)}, which is empty there")
                report.lacking |= dict.fromkeys(lacking, file.file)
        return report

    def where(self, row: int) -> str:
        """Return the number of a row, and its file where there are several."""
        file, row = divmod(row, FILE_ROWS)
        return f"{row:,} of {self.files[file].file}" if self.files else f"{row:,}"

    @property
    def kept(self) -> int:
        return self.read - self.merged - self.skipped.total()

    def skip(self, reason: str, rows: int | Sized) -> None:
        """Count skipped rows. rows: their number, or their numbers in the file."""
        count = rows if isinstance(rows, int) else len(rows)
        if not count:
            return
        self.skipped[reason] += count
        if isinstance(rows, int):
            return
        numbers = np.asarray(rows)
        self.first_rows.setdefault(reason, int(numbers[0]))
        self._sample(reason, numbers[:MAX_EXAMPLES].tolist())
        for number, file in enumerate(self.files):
            file.skip(reason, numbers[numbers // FILE_ROWS == number] % FILE_ROWS)

    def _sample(self, reason: str, rows: list[int]) -> None:
        """Add the first rows that are skipped for a reason."""
        sampled = self.sample_rows.get(reason, [])
        self.sample_rows[reason] = [*sampled, *rows][:MAX_EXAMPLES]

    def changed(
        self,
        column: object,
        changes: Mapping[str, int],
        n_cells: int | None = None,
        examples: Sequence[str] = (),
    ) -> None:
        """Add the number of changed cells of a column of a log, by the kind of change.

        n_cells: how many cells were changed in any way, by default the sum of all kinds. examples:
        some of them as they were.
        """
        name = str(column)
        n_changed = sum(changes.values()) if n_cells is None else n_cells
        self.changed_cells[name] = self.changed_cells.get(name, 0) + n_changed
        self.examples.setdefault(name, list(examples)[:MAX_EXAMPLES])
        self.columns = [
            replace(facts, changed={**facts.changed, **changes}) if facts.name == column else facts
            for facts in self.columns
        ]

    def note(self, count: int, sentence: str, **values: object) -> None:
        """Add a note on `{n}` rows, where there are any; `{n:row|rows}` is the form for that many.

        Text from a file is one of the `values`, never a part of the sentence.
        """
        if count:
            self.notes.append(sentence.format(n=Count(count), **values))

    def note_separators(self, column: str, count: int) -> None:
        """Note how many entries of lists in a column have the sign between entries, in all."""
        if not count:
            return
        sentence = "column {column!r}: {n} {n:entry|entries} of lists with |, written as /"
        former = self.separators[column]
        note = sentence.format(column=column, n=Count(former))
        if note in self.notes:
            self.notes.remove(note)
        self.separators[column] = former + count
        self.note(former + count, sentence, column=column)

    def require_plain(self, role: str, column: str) -> None:
        """Raise `DataError` where an id is a list or an object: as text, [7] would be 7."""
        if column in self.nested:
            raise DataError(
                f"{self.file}, row {self.where(self.nested[column])}: column {column!r} is the "
                f"{role}, and a list or an object is in it: write a text or a number, or name "
                f"another `{role}_column`"
            )

    def require_rows(self) -> None:
        """Raise `DataError` where no row was read."""
        if not self.read:
            raise DataError(
                f"{self.file}: there are no rows in it, or only a header"
                f"{about_documents(self.file)}"
            )

    def require_roles(self, columns: Sequence[ColumnFacts]) -> None:
        """Raise `DataError` where one of several files lacks a column that has a role."""
        lacking = [
            column
            for column in columns
            if column.role not in ("", "text") and column.name in self.lacking
        ]
        if not lacking:
            return
        said = "; ".join(
            f"{self.lacking[column.name]}: no column {column.name!r}, which is the {column.role} "
            "of the other files"
            for column in lacking
        )
        advice = "name it the same in all of them, `join` that file to the others"
        if all(column.role in ROLES for column in lacking):
            # The rows of two logs are not joined by anything.
            advice = "name columns of one meaning the same in all of them, give one file alone"
        ignored = ", ".join(f"`ignore` {column.name}" for column in lacking)
        raise DataError(f"{said}: {advice}, or leave out what is not in all ({ignored})")

    def conclude(self, strict: bool) -> None:
        """Warn where many rows were skipped. strict: raise `DataError` for any warning."""
        self.require_roles(self.columns)
        # Each file by itself, unless options say to skip rows: that is known of all together.
        reports = self.files if self.files and not self.intended else [self]
        for each in reports:
            if each.skipped.total() - each.intended > MAX_SKIPPED * each.read:
                read = quantity(each.read, each.unit)
                self.warnings.append(
                    f"{each.file}: {each.skipped.total():,} of {read} were skipped: "
                    f"{each._reasons()}"
                )
        if strict and self.warnings:
            raise DataError(f"{'; '.join(self.warnings)} (an error, since `strict` is set)")

    def lines(self) -> list[str]:
        """Return the report, its columns and each warning as a build shows and stores them."""
        chosen = [f"Columns of {self.file}: {self.chosen}"] if self.chosen else []
        files = self.files
        if len(files) > MAX_FILES:
            files = [each for each in files if each.skipped or each.repaired or each.notes]
        lines = [each._text(f"{each.read - each.skipped.total():,} used") for each in files]
        if n_others := len(self.files) - len(files):
            n_rows = quantity(self.read - sum(each.read for each in files), "row")
            lines.append(f"{quantity(n_others, 'other file')}: {n_rows} read, all used")
        return [str(self), *lines, *chosen, *self.warning_lines()]

    def warning_lines(self) -> list[str]:
        """Return the warnings as messages show them."""
        return [self._without_users(f"Warning: {each}") for each in self.warnings]

    def _without_users(self, text: str) -> str:
        """Hide e-mail addresses, but for those in names of files."""
        files = [report.file for report in (self, *self.files)]
        return EMAIL.sub(lambda m: m[0] if m[0] in "\n".join(files) else "(e-mail address)", text)

    def _reasons(self) -> str:
        rows = self.first_rows
        return "; ".join(
            f"{count:,} {reason}"
            + (f", first row {self.where(rows[reason])}" if reason in rows else "")
            for reason, count in self.skipped.items()
        )

    def __str__(self) -> str:
        """Return what became of the rows, and the notes."""
        return self._text(f"{self.kept:,} kept, {quantity(self.merged, 'duplicate')} combined")

    def _text(self, used: str) -> str:
        reasons = self._reasons()
        text = (
            f"{self.file}: {quantity(self.read, self.unit)} read: {used}, "
            f"{self.skipped.total():,} skipped" + (f" ({reasons})" if reasons else "")
        )
        if self.repaired and not self.files:
            text += f"; {quantity(self.repaired, 'line')} decoded as {self.encoding}"
        return self._without_users("; ".join([text, *self.notes]))
