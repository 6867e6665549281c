"""The owner's rules on disk: one checksummed file of the workspace, which all builds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from qkvsearch.tables.ids import Id

RULES = "rules.json"
FORMAT = 1
# What a rule does: items come first or last for a query, or count more under a condition.
RuleKind = Literal["pin", "bury", "boost"]
PIN, BURY, BOOST = KINDS = get_args(RuleKind)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the owner. A pin and a bury have a query and items, a boost the other two."""

    # From 1; the number of a rule that was removed is not given again.
    number: int
    kind: RuleKind
    # As it was typed.
    query: str | None = None
    # Ids, in the order in which they are placed.
    items: Sequence[Id] = ()
    # A condition over the catalog's columns.
    where: str | None = None
    # How many standard deviations it adds to the score.
    by: float | None = None
    # What a line of the reasons calls it; None for a text of its own.
    name: str | None = None


@dataclass(frozen=True)
class StoredRules:
    """All rules in the order of their numbers, and the last number that was given."""

    rules: Sequence[Rule] = ()
    last: int = 0

    def added(self, rule: Rule) -> StoredRules:
        """Return them with one more rule, which has the next number."""
        numbered = replace(rule, number=self.last + 1)
        return StoredRules([*self.rules, numbered], numbered.number)

    def without(self, number: int) -> StoredRules:
        """Return them without the rule of this number."""
        return replace(self, rules=[rule for rule in self.rules if rule.number != number])


class RulesFile:
    """The file of the rules of a workspace. There is none before the first rule."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / RULES

    def state(self) -> tuple[int, ...] | None:
        """Return a value that changes with every change of the rules; None without a file."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def read(self) -> StoredRules:
        """Read the rules. Raises `DamagedError`."""
        try:
            content: Any = read_checksummed(self.path)
        except FileNotFoundError:
            return StoredRules()
        try:
            if content["format"] == FORMAT:
                rules = [Rule(**fields) for fields in content["rules"]]
                return StoredRules(rules, content["last"])
        except (AttributeError, LookupError, TypeError):
            pass
        raise DamagedError(self.path, "it is not a list of rules")

    def set_aside(self) -> Path:
        """Rename a damaged file, so that the owner can look at it, and return its new path. Raises
        `WorkspaceError`.
        """
        aside = self.path.with_suffix(".damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            raise WorkspaceError(
                f"{self.path}: cannot rename: {error.strerror or error}"
            ) from error
        return aside

    def write(self, stored: StoredRules) -> None:
        """Replace the rules; the rename of the file is the commit. Raises `WorkspaceError`."""
        rules = [asdict(rule) for rule in stored.rules]
        content = {"format": FORMAT, "last": stored.last, "rules": rules}
        try:
            write_checksummed(self.path, content)
        except OSError as error:
            reason = error.strerror or error
            raise WorkspaceError(
                f"{self.path}: cannot write: {reason}; the rules are as before"
            ) from error
