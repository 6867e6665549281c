"""Commands that change a workspace: `qkvsearch add`, `sync`, `remove`, `record`, `learn`,
`compact`, `rollback`, `repair` and `forget`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.columns import (
    columns_of,
    event_options,
    file_options,
    item_columns,
    join_option,
    log_columns,
)
from qkvsearch.cli.commands import NUMBER, command, wait_option
from qkvsearch.cli.context import settings
from qkvsearch.cli.listing_table import cell_text, write_listing
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.stderr import TYPED, reason_of
from qkvsearch.cli.text_table import to_table
from qkvsearch.errors import Count, DataError, QkvError, quantity
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch.learn.add import Revision
    from qkvsearch.learn.erase import Forgotten
    from qkvsearch.rank.listing import Listing
    from qkvsearch.where import Where

# How many titles of removed items a message names.
MAX_TITLES = 5
# Up to this many items are removed by a condition without a question.
MAX_UNCONFIRMED = 10
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
again_option = click.option(
    "--again", is_flag=True, help="Record the file even if its content is recorded already."
)


@contextmanager
def _results_of_a_change() -> Iterator[None]:
    """Say after an error that only the results could not be written: the change is made."""
    try:
        yield
    except (OSError, DataError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        message = f"the change is made, but its results could not be written: {reason}"
        raise click.ClickException(message) from error


def can_ask() -> bool:
    """Return whether there is a terminal on which to ask the user."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> None:
    """Ask the user, and end the command if the answer is no."""
    if not click.confirm(in_one_line(question), err=True):
        settings().message("Nothing was changed.")
        raise click.exceptions.Exit(1)


@command(short_help="Add items or interactions to a workspace without a rebuild.")
@click.argument("file", type=click.Path(path_type=str), required=False)
@join_option("FILE")
@item_columns("FILE", "the columns to search in, in the order of the build, if names differ")
@click.option(
    "--update",
    is_flag=True,
    help="Only change the columns that FILE has, of items that are there.",
)
@click.option(
    "--interactions",
    metavar="LOG",
    type=click.Path(path_type=str),
    help="A table of interactions, recorded after the items of FILE are added.",
)
@log_columns("LOG")
@event_options
@again_option
@file_options
@wait_option
def add(
    file: str | None,
    join: tuple[str, ...],
    update: bool,
    interactions: str | None,
    again: bool,
    **of_log: Any,
) -> None:
    """Add the items of FILE, or replace items with the same ids; or record the interactions of a
    LOG. FILE may be a folder of subtitles, texts, Markdown and HTML, one item a file.

    A replaced item has only what FILE says of it. With --update, only the columns of FILE change,
    an empty cell empties the item's cell, and an id that is not in the catalog is an error.

    `search` finds new items at once, and `recommend` places those without interactions by their
    text, marked cold. Nothing is learned again: the encoder and the preferences stay those of the
    build. A replaced item keeps its interactions. Recorded interactions count in the next
    `recommend`, as with `record LOG`; `learn` makes them a part of the build.

    \b
    Examples:
      qkvsearch -w shop add new-products.csv
      qkvsearch -w shop add prices.csv --update
      qkvsearch -w shop add --interactions orders-of-may.csv
    """
    if file is None and interactions is None:
        raise click.UsageError("name a file of items, or a log: --interactions LOG")
    of_items = {
        name: of_log.pop(name) for name in ("id_column", "title_column", "text_columns", "texts")
    }
    of_files = {name: of_log.pop(name) for name in ("ignore", "delimiter", "encoding")}
    if file is None and (update or join or any(of_items.values())):
        raise click.UsageError("these options belong to items: add FILE")
    if interactions is None and (again or any(of_log.values())):
        raise click.UsageError("these options belong to a log: --interactions LOG")
    run = settings()
    engine = run.open_writable()
    if file is not None:
        with run.progress() as progress:
            columns = columns_of(**of_items, **of_files)
            done = engine.add(
                file, columns, join=list(join) or None, update=update, progress=progress
            )
        run.notes(done.notes)
        counts = f"{done.added:,} added, {done.replaced:,} replaced"
        if update:
            counts = f"{done.replaced:,} changed"
        run.message(f"{engine.workspace.path}: {counts}; {quantity(done.n_items, 'item')}.")
    if interactions is not None:
        columns = columns_of(**of_log, **of_files)
        try:
            recorded = engine.record_many(interactions, columns, again=again)
        except QkvError as error:
            if file is None:
                raise
            raise QkvError(
                f"the items are added, and no interaction is recorded: {error}"
            ) from error
        run.notes(recorded.notes)
        run.message(f"Recorded {_summary(recorded)}.")


@command(short_help="Make the items those of a file, without a rebuild.")
@click.argument("file", type=click.Path(path_type=str))
@join_option("FILE")
@item_columns("FILE", "the columns to search in, in the order of the build, if names differ")
@click.option("--keep-missing", is_flag=True, help="Do not remove the items that FILE lacks.")
@click.option("--yes", is_flag=True, help="Also remove more than a fifth of the items.")
@file_options
@wait_option
@output_options
def sync(
    file: str,
    join: tuple[str, ...],
    keep_missing: bool,
    yes: bool,
    output: Output,
    **columns: Any,
) -> None:
    """Make the items those of FILE, such as a nightly export: add what is new, change what differs,
    and remove what FILE lacks, with its interactions. All this is one build. If nothing differs,
    there is no build.

    The items keep their interactions, and a column that FILE lacks stays as it is. If the build had
    --join or --texts, give them again. If FILE lacks more than a fifth of the items, it may have
    been cut off: the command changes nothing and fails, unless with --yes or --keep-missing.
    --format shows the numbers. `rollback` undoes it.

    \b
    Examples:
      qkvsearch -w shop sync export.csv
      qkvsearch -w shop sync export.csv --join stock.csv
      qkvsearch -w shop sync export.csv --format json
    """
    run = settings()
    engine = run.open_writable()
    with run.progress() as progress:
        done = engine.sync(
            file,
            columns_of(**columns),
            join=list(join) or None,
            keep_missing=keep_missing,
            yes=yes,
            progress=progress,
        )
    run.notes(done.notes)
    counts = f"{done.added:,} added, {done.changed:,} changed, {done.removed:,} removed"
    if done.interactions_removed:
        counts += f" with {quantity(done.interactions_removed, 'interaction')}"
    if not done.added + done.changed + done.removed:
        counts = "nothing to change"
    if done.kept:
        counts += f", {done.kept:,} missing and kept"
    run.message(f"{engine.workspace.path}: {counts}; {quantity(done.n_items, 'item')}.")
    if output.is_requested:
        numbers = asdict(done)
        del numbers["notes"]  # they are printed already
        rows = [[name, f"{number:,}"] for name, number in numbers.items()]
        with _results_of_a_change():
            output.write_one(
                numbers, [numbers], lambda: to_table([("", "left"), ("", "right")], rows)
            )


@command(short_help="Remove items from a workspace without a rebuild.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option(
    "--where",
    metavar="EXPR",
    help="Instead of ITEMs: remove all for which this SQL expression over the columns holds.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@yes_option
@wait_option
@output_options
def remove(
    items: tuple[str, ...], where: Where | None, dry_run: bool, yes: bool, output: Output
) -> None:
    """Remove each ITEM, an id or a unique title, with its interactions.

    If one of them is unknown, none is removed. Interactions recorded since the last `learn` count
    again if `add` brings the item back. --format lists id and title of the removed items. On a
    terminal, removing more than ten items by a condition needs a confirmation; `rollback` brings
    them back.

    \b
    Examples:
      qkvsearch -w shop remove 4711 "Rain jacket"
      qkvsearch -w films remove --where "year < 1950" --dry-run
    """
    run = settings()
    if bool(items) == (where is not None):
        raise click.UsageError("name items, or give --where EXPR: one of the two")
    engine = run.open_writable()
    if where is not None and not (yes or dry_run) and can_ask():
        plan = engine.remove(where=where, dry_run=True)
        if plan.removed > MAX_UNCONFIRMED:
            run.message(f"Among them: {_titles(plan)}.")
            confirm(f"Remove {plan.removed:,} of {plan.n_items + plan.removed:,} items?")
    with run.progress() as progress:
        done = engine.remove(items, where=where, dry_run=dry_run, progress=progress)
    run.notes(done.notes)
    condition = "" if where is None else f" ({where if isinstance(where, str) else where[0]})"
    interactions = quantity(done.interactions_removed, "interaction")
    items_left = quantity(done.n_items, "item")
    path = engine.workspace.path
    if dry_run:
        run.message(
            f"{path}: {done.removed:,} would be removed{condition}, with {interactions}; "
            f"{items_left} would stay."
        )
    else:
        run.message(
            f"{path}: {done.removed:,} removed{condition}, with {interactions}; {items_left}."
        )
    if dry_run and done.gone:
        run.message(f"Among them: {_titles(done)}.")
    if output.is_requested:
        from qkvsearch.rank.listing import Listing

        with _results_of_a_change():
            write_listing(Listing(done.gone, len(done.gone), ("id", "title")), "items", output)


def _titles(done: Revision) -> str:
    titles = [" ".join(str(item["title"]).split()) for item in done.gone[:MAX_TITLES]]
    if done.removed > MAX_TITLES:
        titles.append(f"and {done.removed - MAX_TITLES:,} more")
    return ", ".join(titles)


# A rating may be below 0, and would be taken for an option.
@command(
    short_help="Record interactions of users with items.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", metavar="USER ITEM [RATING] | FILE", nargs=-1)
@click.option(
    "--undo",
    metavar="[BATCH]",
    is_flag=False,
    flag_value="last",
    help="Take back a batch, by default the last one that you recorded.",
)
@click.option(
    "--event",
    metavar="NAME",
    help="What a single interaction is, such as purchase; it counts as such events of the build.",
)
@again_option
@log_columns("FILE")
@event_options
@file_options
@wait_option
@output_options
def record(
    words: tuple[str, ...],
    undo: str | None,
    event: str | None,
    again: bool,
    output: Output,
    **columns: Any,
) -> None:
    """Record that USER interacted with ITEM, perhaps with a RATING; or record every row of FILE.

    The next `recommend` counts it, without a rebuild. A new user is created; ITEM, an id or a
    title, must be in the catalog. If the log has weights instead of ratings, such as quantities,
    RATING is a weight, and a negative one takes back. If the log has events, --event NAME says
    which one it is: it has the weight that the build gave such events, times RATING, if any.

    FILE is a table such as `build` reads; all usable rows are recorded at once, and the others are
    counted. The same content is not recorded twice, unless with --again.

    Each call is a batch with a number. --undo takes back the last batch that you, the user of the
    operating system, recorded on the command line or from Python; again, the one before. --undo
    BATCH takes back that one, whoever recorded it. `records` lists everything.

    \b
    Examples:
      qkvsearch -w films record 1017 "Heat (1995)" 4.5
      qkvsearch -w shop record ann 4711 --event purchase
      qkvsearch -w shop record today.csv
      qkvsearch -w shop record --undo
      qkvsearch -w shop record --undo 17
    """
    _check_words(words, undo, event, {**columns, "again": again})
    from qkvsearch.learn.recording import NewRow, Recording

    run = settings()
    engine = run.open_writable()
    if undo:
        done = engine.undo_record(None if undo == "last" else int(undo))
    elif len(words) == 1:
        if words[0] != "-" and "://" not in words[0] and not Path(words[0]).exists():
            raise click.UsageError(
                f"{words[0]}: no such file; for a single interaction name a user and an item"
            )
        done = engine.record_many(words[0], columns_of(**columns), again=again)
    else:
        recording = Recording(engine.workspace, engine.current_build.histories)
        value = float(words[2]) if words[2:] else None
        rating, weight = recording.values.by_kind(value)
        done = recording.record([NewRow(words[0], words[1], rating, weight, event)])
    run.notes(done.notes)
    run.message(f"{'Took back' if undo else 'Recorded'} {_summary(done)}.")
    if output.is_requested:
        with _results_of_a_change():
            write_listing(done, "interactions", output)


def _check_words(
    words: tuple[str, ...], undo: str | None, event: str | None, of_file: dict[str, Any]
) -> None:
    """Raise `click.UsageError` for arguments of `record` that name nothing to record."""
    context = click.get_current_context()
    typed = context.find_root().meta.get(TYPED, [])
    after_dashes = typed[typed.index("--") + 1 :] if "--" in typed else []
    for word in words:
        if word.startswith("-") and not NUMBER.fullmatch(word) and word not in [*after_dashes, "-"]:
            raise click.NoSuchOption(word, ctx=context)
    if undo and (words or not (undo == "last" or undo.isdecimal())):
        raise click.UsageError("--undo takes back a batch, by its number: leave out what to record")
    if not undo and not 1 <= len(words) <= 3:
        raise click.UsageError("name a user and an item, or a file of interactions, or --undo")
    if len(words) != 1 and any(of_file.values()):
        raise click.UsageError("columns, delimiters and --again belong to a file: record FILE")
    if event is not None and len(words) < 2:
        raise click.UsageError(
            "--event is of a single interaction: name a user and an item; of a file, "
            "--event-column names the column of events"
        )
    if len(words) == 3 and not NUMBER.fullmatch(words[2]):
        raise click.UsageError(f"{words[2]!r} is not a number; the third word is a rating")


def _summary(done: Listing) -> str:
    """Return the batch, and one recorded interaction in words, or the number of several."""
    users = {row["user"] for row in done}
    batch = f"batch {done[0]['batch']}: "
    if len(done) > 1:
        return f"{batch}{len(done):,} interactions of {quantity(len(users), 'user')}"
    (row,) = done
    value = ""
    if row.get("rating") is not None:
        value = f", rated {cell_text(row['rating'])}"
    elif row.get("weight") is not None:
        value = f", weight {cell_text(row['weight'])}"
    title = row["title"] or "an item that was removed"
    return f"{batch}user {row['user']}, {title} ({row['id']}){value}"


@command(short_help="Learn from what was recorded, without the files of the build.")
@wait_option
def learn() -> None:
    """Learn preferences, ratings and, if the build has one, the next-item model again: from the log
    and everything recorded since, with the current settings. This does not need the files of the
    build, and does not read texts again. Records stay listed, marked as learned.

    \b
    Example:
      qkvsearch -w shop learn
    """
    run = settings()
    engine = run.open_writable()
    with run.progress() as progress:
        done = engine.learn(progress=progress)
    run.notes(done.notes)
    run.message(
        f"{engine.workspace.path}: learned from {quantity(done.n_interactions, 'interaction')} of "
        f"{quantity(done.n_users, 'user')}, {done.recorded:,} of them recorded since the last time."
    )


@command(short_help="Merge additions and removals, and drop previous builds.")
@click.option(
    "--drop-builds",
    is_flag=True,
    help="Also remove all previous builds; afterwards there is none to roll back to.",
)
@wait_option
def compact(drop_builds: bool) -> None:
    """Merge the segments that add and remove have written into one. Answers stay exactly the same,
    and become a little faster. This happens automatically above 32 segments, or when they have a
    fifth as many rows as the base.

    \b
    Examples:
      qkvsearch -w shop compact
      qkvsearch -w shop compact --drop-builds
    """
    run = settings()
    engine = run.open_writable()
    with run.progress() as progress:
        done = engine.compact(drop_builds=drop_builds, progress=progress)
    merged = f"{done.segments:,} segments merged" if done.segments > 1 else "nothing to merge"
    dropped = f", {quantity(done.dropped, 'previous build')} removed" if drop_builds else ""
    run.message(f"{engine.workspace.path}: {merged}{dropped}; {quantity(done.n_items, 'item')}.")


@command(short_help="Undo the last change: return to a previous build.")
@click.argument("id", required=False)
@wait_option
def rollback(id: str | None) -> None:
    """Return to the previous build, or to the build ID, as listed by `builds`. This undoes an add,
    remove, build, learn, tune or compact at once. Recorded interactions stay recorded. Later builds
    stay, so that you can return to them.

    \b
    Examples:
      qkvsearch -w shop rollback
      qkvsearch -w shop rollback 20240301-101500-3f9a2c
    """
    run = settings()
    engine = run.open_writable()
    before = engine.snapshot.name
    entry = engine.rollback(id)
    path = engine.workspace.path
    created = entry.created[:16].replace("T", " ")
    run.message(
        f"{path}: back to {entry.name}, by {entry.command}, of {created} (UTC); "
        f"{quantity(entry.items, 'item')}."
    )
    if before != entry.name:
        run.message(f"To undo that: qkvsearch -w {shlex.quote(str(path))} rollback {before}")


@command(short_help="Repair a damaged workspace.")
@wait_option
def repair() -> None:
    """Find every damaged file. What can be derived from undamaged files, such as lexical keys from
    the catalog's texts, is made again; the rest is listed and put aside. An undamaged workspace
    stays as it is.

    \b
    Examples:
      qkvsearch -w shop repair
      qkvsearch -w shop info --verify && echo undamaged
    """
    from qkvsearch.engine import repair as repair_workspace

    run = settings()
    path = run.writable_path()
    with run.progress() as progress:
        done = repair_workspace(path, wait=run.wait, notify=run.message, progress=progress)
    run.notes(done.notes)
    for component in done.rebuilt:
        run.message(f"Made again: {component}.")
    for component in done.lost:
        run.message(f"Lost: {component}.")
    if not (done.rebuilt or done.lost or done.notes):
        run.message(f"{path}: nothing is damaged.")


@command(short_help="Erase a user's data: log, records and previous builds.")
@click.argument("user")
@yes_option
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@wait_option
def forget(user: str, yes: bool, dry_run: bool) -> None:
    """Erase the data of USER: their interactions in the log, their records, and all previous
    builds, which contain them too. Afterwards no file of the workspace contains the id, and nothing
    can be undone. What was learned from them together with others stays until `learn` fits it
    again, and a message says so. The log of searches has no ids of users; searches whose text
    contains this id are deleted there.

    Copies of the workspace and the files that it was built from are not changed.

    \b
    Examples:
      qkvsearch -w shop forget 1017
      qkvsearch -w shop forget 1017 --yes
    """
    run = settings()
    engine = run.open_writable()
    if not (yes or dry_run or can_ask()):
        raise click.UsageError("forget cannot be undone: confirm with --yes")
    path = engine.workspace.path
    if dry_run or not yes:
        plan = engine.forget(user, dry_run=True)
        if plan.notes:  # an earlier, interrupted call has deleted everything
            run.notes(plan.notes)
            return
        run.message(f"{path}: {_deleted(plan)} would be deleted for good.")
        if dry_run:
            return
        confirm(f"Forget {user}?")
    with run.progress() as progress:
        done = engine.forget(user, progress=progress)
    run.message(f"{path}: {_deleted(done)} deleted.")
    run.notes(done.notes)


def _deleted(done: Forgotten) -> str:
    searches = []
    if done.searches:
        n = Count(done.searches)
        searches.append(f"{n} logged {n:search|searches}")
    *others, last = [
        quantity(done.interactions, "interaction"),
        quantity(done.records, "record"),
        quantity(done.builds, "previous build"),
        *searches,
    ]
    return f"{', '.join(others)} and {last}"
