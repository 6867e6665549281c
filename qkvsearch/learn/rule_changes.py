"""Add and remove the owner's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qkvsearch._utils.limits import QUERY
from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import QkvError, UnknownIdError, listed_names, quantity
from qkvsearch.rank.candidates import positions_of
from qkvsearch.rank.listing import Listing
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.owner_rules import OwnerRules, items_under, query_key
from qkvsearch.store import Workspace
from qkvsearch.store.rules_file import BOOST, BURY, PIN, Rule, StoredRules
from qkvsearch.tables.ids import Id, id_text
from qkvsearch.terminal import printable

# How many rules a workspace may have, and the characters of a rule's name.
MAX_RULES, MAX_NAME = 1000, 80
# The largest number of standard deviations that a boost adds or takes away.
MAX_BY = 1000.0
NAMES = ("number", "kind", "query", "items", "where", "by", "name", "problem")


def rule_rows(workspace: Workspace, build: LoadedBuild) -> Listing:
    """List the rules by their numbers, each with the `problem` for which the build skips it or a
    part of it; None where there is none. Raises `DamagedError`.
    """
    stored = workspace.rules.read().rules
    problems = OwnerRules.of(stored, build.catalog).problems
    rows = [_row(rule, problems.get(rule.number)) for rule in stored]
    return Listing(rows, len(rows), NAMES)


def _row(rule: Rule, problem: str | None = None) -> dict[str, Any]:
    return {
        "number": rule.number,
        "kind": rule.kind,
        "query": rule.query,
        "items": list(rule.items),
        "where": rule.where,
        "by": rule.by,
        "name": rule.name,
        "problem": problem,
    }


def added_rule(
    workspace: Workspace,
    build: LoadedBuild,
    pin: str | None,
    bury: str | None,
    items: Sequence[Id],
    boost: str | None,
    by: float | None,
    name: str | None,
) -> Listing:
    """Check and store one more rule, as `Engine.add_rule` describes, and return it with notes on
    what was understood. Raises `QkvError`, and `WorkspaceError`.
    """
    if sum(given is not None for given in (pin, bury, boost)) != 1:
        raise QkvError("a rule has one of `pin`, `bury` and `boost`")
    if boost is None:
        if by is not None:
            raise QkvError("`by` is of a `boost`: leave it out")
        rule, notes = _placing_rule(build, pin, bury, items, name)
    else:
        if items:
            raise QkvError("`items` are of `pin` and `bury`: a `boost` has a condition")
        rule, notes = _boosting_rule(build, boost, by, name)
    stored = _stored(workspace, rule)
    return Listing([_row(stored)], 1, NAMES, notes=notes)


def _placing_rule(
    build: LoadedBuild, pin: str | None, bury: str | None, items: Sequence[Id], name: str | None
) -> tuple[Rule, list[str]]:
    """Return a rule that pins or buries items, and notes on their names. Raises `QkvError`."""
    query = pin if pin is not None else bury
    assert query is not None
    argument = "pin" if pin is not None else "bury"
    QUERY.check(len(query), f"`{argument}`")
    if not items:
        raise QkvError(f"`{argument}`: name at least one item")
    rows, notes = positions_of(build.catalog, items)
    ids, _ = build.catalog.names(list(dict.fromkeys(rows)))
    kind = PIN if pin is not None else BURY
    return Rule(number=0, kind=kind, query=query, items=list(ids), name=_named(name)), notes


def _boosting_rule(
    build: LoadedBuild, boost: str, by: float | None, name: str | None
) -> tuple[Rule, list[str]]:
    """Return a rule that boosts items, and a note on how many there are. Raises `QkvError`."""
    is_valid = is_number(by) and by != 0 and abs(float(by or 0.0)) <= MAX_BY
    require(is_valid, "by", by, f"a number from {-MAX_BY:g} to {MAX_BY:g}, and not 0")
    items = items_under(build.catalog, boost, "`boost`")
    rule = Rule(number=0, kind=BOOST, where=boost, by=float(by or 0.0), name=_named(name))
    return rule, [f"It holds for {int(items.sum()):,} of {quantity(build.n_items, 'item')}."]


def _named(name: str | None) -> str | None:
    """Return the name of a rule in one line, as the reasons show it. Raises `DataError`."""
    if name is None:
        return None
    in_line = printable(" ".join(name.split()))
    require(0 < len(in_line) <= MAX_NAME, "name", name, f"a text of 1 to {MAX_NAME} characters")
    return in_line


def _stored(workspace: Workspace, rule: Rule) -> Rule:
    """Store one more rule, and return it with its number. Raises `QkvError` where another one does
    the same or the contrary, and `WorkspaceError`.
    """
    with workspace.writing("rules"):
        stored = workspace.rules.read()
        if len(stored.rules) >= MAX_RULES:
            raise QkvError(f"there are {MAX_RULES:,} rules already: remove some first")
        for other in stored.rules:
            _check_beside(rule, other)
        added = stored.added(rule)
        workspace.rules.write(added)
    return added.rules[-1]


def _check_beside(rule: Rule, other: Rule) -> None:
    """Raise `QkvError` for a rule that does the same as another one, or the contrary."""
    if rule.kind == BOOST:
        if other.kind == BOOST and other.where == rule.where:
            raise QkvError(f"rule {other.number} boosts the same items: remove it first")
        return
    if other.kind == BOOST or query_key(str(other.query)) != query_key(str(rule.query)):
        return
    if both := [id_text(id_) for id_ in rule.items if id_ in other.items]:
        does = "pins" if other.kind == PIN else "buries"
        named = listed_names(both)
        raise QkvError(f"rule {other.number} {does} {named} for this query: remove it first")


def removed_rule(workspace: Workspace, number: int) -> Listing:
    """Remove a rule, and return it. Raises `UnknownIdError` for an unknown number, and
    `WorkspaceError`.
    """
    with workspace.writing("rules"):
        stored = workspace.rules.read()
        rule = next((rule for rule in stored.rules if rule.number == number), None)
        if rule is None:
            raise UnknownIdError(f"no rule {number}; {_there_are(stored)}")
        workspace.rules.write(stored.without(number))
    return Listing([_row(rule)], 1, NAMES)


def _there_are(stored: StoredRules) -> str:
    if not stored.rules:
        return "there are no rules"
    numbers = [str(rule.number) for rule in stored.rules]
    return f"there {'is' if len(numbers) == 1 else 'are'} {listed_names(numbers)}"
