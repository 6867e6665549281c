"""Commands that change a workspace: `qkvsearch add`, `remove`, `record`, `learn`, `compact`,
`rollback`, `repair` and `forget`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import NUMBER, TYPED, delimiter_option, settings, wait_option
from qkvsearch.cli.hits import where_options
from qkvsearch.cli.render import Output, output_options, shown, write_listing
from qkvsearch.errors import quantity
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.engine import Engine
    from qkvsearch.index.add import Revision
    from qkvsearch.index.erase import Forgotten
    from qkvsearch.query.where import Where
    from qkvsearch.search.listing import Listing

# Of what leaves, as many titles are said.
SHOWN_TITLES = 5
# So many leave by a condition without a question.
UNASKED = 10
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def is_asked() -> bool:
    """Whether there is somebody to ask: on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> None:
    """Ask a person; end the command where the answer is no."""
    if not click.confirm(in_one_line(question), err=True):
        settings().say("Nothing was changed.")
        raise click.exceptions.Exit(1)


def log_columns(file: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that name the columns of a log, where a guess would be wrong."""
    roles = {"user": "the user", "item": "the item", "rating": "the rating",
             "weight": "the weight", "time": "when it was"}  # fmt: skip
    options = [
        click.option(f"--{role}-column", metavar="NAME", help=f"In {file}: {what}.")
        for role, what in roles.items()
    ]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def columns_of(named: dict[str, str | None]) -> Columns:
    """What these options say."""
    from qkvsearch.data.columns import Columns

    roles = {name.removesuffix("_column"): given for name, given in named.items()}
    return Columns(**roles)  # type: ignore[arg-type]


@click.command(short_help="Add items or interactions to a workspace without a rebuild.")
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--id-column", metavar="NAME", help="The id.")
@click.option("--title-column", metavar="NAME", help="The title.")
@click.option(
    "--text-columns",
    metavar="NAMES",
    help="What search reads, in the order of the build, where FILE has other names for it.",
)
@click.option(
    "--interactions",
    metavar="LOG",
    type=click.Path(path_type=str),
    help="A log: its interactions are recorded, after the items of FILE joined.",
)
@log_columns("LOG")
@delimiter_option
@wait_option
def add(
    file: str | None,
    id_column: str | None,
    title_column: str | None,
    text_columns: str | None,
    interactions: str | None,
    delimiter: str | None,
    **columns: str | None,
) -> None:
    """Add the items of FILE, or replace those whose ids are already there; or the interactions of a
    LOG.

    `search` finds items at once, and `recommend` places those without interactions by their text,
    marked cold. Nothing is learned anew: the encoder and the preferences stay those of the build. A
    replaced item keeps its interactions. The next `recommend` knows the interactions, as with
    `record LOG`; `learn` makes them a part of the build.

    \b
    Examples:
      qkvsearch -w shop add new-products.csv
      qkvsearch -w shop add --interactions orders-of-may.csv
    """
    if file is None and interactions is None:
        raise click.UsageError("name a file of items, or a log: --interactions LOG")
    if file is None and (id_column or title_column or text_columns):
        raise click.UsageError("there are no items to have these columns: add FILE")
    if interactions is None and any(columns.values()):
        raise click.UsageError("these columns are those of a log: --interactions LOG")
    if file is not None:
        _add_items(file, id_column, title_column, text_columns, delimiter)
    if interactions is not None:
        run = settings()
        done = run.open_own().record_many(
            interactions, columns_of({**columns, "delimiter": delimiter})
        )
        run.say_notes(done.notes)
        run.say(f"Recorded: {in_words(done)}.")


def _add_items(
    file: str,
    id_column: str | None,
    title_column: str | None,
    text_columns: str | None,
    delimiter: str | None,
) -> None:
    from qkvsearch.data.columns import Columns

    run = settings()
    engine = run.open_own()
    text = [name.strip() for name in text_columns.split(",")] if text_columns else None
    columns = Columns(id=id_column, title=title_column, text=text, delimiter=delimiter)
    with run.progress() as progress:
        done = engine.add(file, columns, progress=progress)
    run.say_notes(done.notes)
    path = engine.workspace.path
    run.say(
        f"{path}: {done.added:,} added, {done.replaced:,} replaced; "
        f"{quantity(done.n_items, 'item')}."
    )


@click.command(short_help="Remove items from a workspace without a rebuild.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@where_options(
    "Instead of ITEMs: all for which this SQL expression over the catalog's columns holds."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@yes_option
@wait_option
@output_options
def remove(
    items: tuple[str, ...], where: Where | None, dry_run: bool, yes: bool, output: Output
) -> None:
    """Remove each ITEM, an id or a title that only one item has, with its interactions.

    All of them are looked up first: where one is unknown, none is removed. What was recorded stays
    recorded, and counts again if `add` brings the item back. --format lists id and title of what is
    removed. On a terminal, to remove more than ten items by a condition is asked first; rollback
    brings them back.

    \b
    Examples:
      qkvsearch -w shop remove 4711 "Rain jacket"
      qkvsearch -w films remove --where "year < 1950" --dry-run
    """
    run = settings()
    if bool(items) == (where is not None):
        raise click.UsageError("name items, or give --where EXPR: one of the two")
    engine = run.open_own()
    if where is not None and not (yes or dry_run) and is_asked():
        would = engine.remove(where=where, dry_run=True)
        if would.removed > UNASKED:
            run.say(f"Among them: {_titles(would)}.")
            confirm(f"Remove {would.removed:,} of {would.n_items + would.removed:,} items?")
    with run.progress() as progress:
        done = engine.remove(items, where=where, dry_run=dry_run, progress=progress)
    run.say_notes(done.notes)
    run.say(_removal(done, str(engine.workspace.path), where, dry_run))
    if dry_run and done.gone:
        run.say(f"Among them: {_titles(done)}.")
    if output.asked:
        from qkvsearch.search.listing import Listing

        write_listing(Listing(done.gone, len(done.gone), ("id", "title")), "items", output)


def _removal(done: Revision, path: str, where: Where | None, dry_run: bool) -> str:
    """How much was removed, or would be, by which condition, and how much stays."""
    does, stay = ("would be removed", " would stay") if dry_run else ("removed", "")
    expression = where if where is None or isinstance(where, str) else where[0]
    why = "" if expression is None else f" ({expression})"
    return (
        f"{path}: {done.removed:,} {does}{why}, with "
        f"{quantity(done.interactions_removed, 'interaction')}; "
        f"{quantity(done.n_items, 'item')}{stay}."
    )


def _titles(done: Revision) -> str:
    titles = [" ".join(str(item["title"]).split()) for item in done.gone[:SHOWN_TITLES]]
    more = [f"and {done.removed - SHOWN_TITLES:,} more"] if done.removed > SHOWN_TITLES else []
    return ", ".join([*titles, *more])


# A rating may be below 0, and would be taken for an option.
@click.command(
    short_help="Record interactions of users with items.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", metavar="USER ITEM [RATING] | FILE", nargs=-1)
@click.option("--undo", is_flag=True, help="Take back what was recorded last.")
@log_columns("FILE")
@delimiter_option
@wait_option
@output_options
def record(words: tuple[str, ...], undo: bool, output: Output, **columns: str | None) -> None:
    """Record that USER interacted with ITEM, and with which RATING, if any; or every row of FILE.

    The next `recommend` knows it, without a rebuild. A new user is created; ITEM, an id or a title,
    must be in the catalog. Where the log has weights in place of ratings, such as quantities,
    RATING is one, and a negative one takes back. FILE is a table such as `build` reads; all of its
    rows that can be used are recorded at once, and the others counted. --undo takes back what the
    last `record` wrote; again, what the one before wrote. `records` lists it all.

    \b
    Examples:
      qkvsearch -w films record 1017 "Heat (1995)" 4.5
      qkvsearch -w shop record today.csv
      qkvsearch -w shop record --undo
    """
    _check_words(words, undo, columns)
    run = settings()
    engine = run.open_own()
    if undo:
        done, said = engine.undo_record(), "Taken back"
    elif len(words) == 1:
        done, said = _record_file(engine, words[0], columns), "Recorded"
    else:
        done, said = engine.record(words[0], words[1], *map(float, words[2:])), "Recorded"
    run.say_notes(done.notes)
    run.say(f"{said}: {in_words(done)}.")
    if output.asked:
        write_listing(done, "interactions", output)


def _check_words(words: tuple[str, ...], undo: bool, columns: dict[str, str | None]) -> None:
    """Raise `click.UsageError` for words that name nothing to record."""
    context = click.get_current_context()
    typed = context.find_root().meta.get(TYPED, [])
    as_they_are = typed[typed.index("--") + 1 :] if "--" in typed else []
    for word in words:
        if word.startswith("-") and not NUMBER.fullmatch(word) and word not in [*as_they_are, "-"]:
            raise click.NoSuchOption(word, ctx=context)
    if undo and words:
        raise click.UsageError("--undo takes back the last: leave out what to record")
    if not undo and not 1 <= len(words) <= 3:
        raise click.UsageError("name a user and an item, or a file of interactions, or --undo")
    if len(words) != 1 and any(columns.values()):
        raise click.UsageError("columns and delimiters are those of a file: record FILE")
    if len(words) == 3 and not NUMBER.fullmatch(words[2]):
        raise click.UsageError(f"{words[2]!r} is no number, and the third word is a rating")


def _record_file(engine: Engine, file: str, columns: dict[str, str | None]) -> Listing:
    if file != "-" and "://" not in file and not Path(file).exists():
        raise click.UsageError(
            f"{file}: no such file; for a single interaction name a user and an item"
        )
    return engine.record_many(file, columns_of(columns))


def in_words(done: Listing) -> str:
    """What was recorded: one interaction by name, many by their number."""
    users = {row["user"] for row in done}
    if len(done) > 1:
        return f"{len(done):,} interactions of {quantity(len(users), 'user')}"
    (row,) = done
    item = f"{row['title'] or 'an item that left the catalog'} ({row['id']})"
    return f"user {row['user']}, {item}{_valued(row)}"


def _valued(row: dict[str, Any]) -> str:
    if row.get("rating") is not None:
        return f", rated {shown(row['rating'])}"
    return f", weight {shown(row['weight'])}" if row.get("weight") is not None else ""


@click.command(short_help="Learn from what was recorded, without the files of the build.")
@wait_option
def learn() -> None:
    """Learn preferences, ratings and, where the build has it, what comes next again: from the log
    and all that was recorded since, with the settings in use. The files that the workspace was
    built from are not needed, and texts are not read again. Records stay listed as learned.

    \b
    Example:
      qkvsearch -w shop learn
    """
    run = settings()
    engine = run.open_own()
    with run.progress() as progress:
        done = engine.learn(progress=progress)
    run.say_notes(done.notes)
    run.say(
        f"{engine.workspace.path}: learned from {quantity(done.n_interactions, 'interaction')} of "
        f"{quantity(done.n_users, 'user')}, {done.recorded:,} of them recorded since the last time."
    )


@click.command(short_help="Merge what add and remove left, and drop former builds.")
@click.option(
    "--drop-builds",
    is_flag=True,
    help="Also remove all former builds, so that nothing is left to roll back to.",
)
@wait_option
def compact(drop_builds: bool) -> None:
    """Merge the segments that add and remove leave behind the base. Answers stay as they are to the
    last bit, and are a little quicker. It happens by itself where there are more than 32 segments,
    or where they have a fifth as many rows as the base.

    \b
    Examples:
      qkvsearch -w shop compact
      qkvsearch -w shop compact --drop-builds
    """
    run = settings()
    engine = run.open_own()
    with run.progress() as progress:
        done = engine.compact(drop_builds=drop_builds, progress=progress)
    merged = f"{done.segments:,} segments merged" if done.segments > 1 else "nothing to merge"
    dropped = f", {quantity(done.dropped, 'former build')} removed" if drop_builds else ""
    run.say(f"{engine.workspace.path}: {merged}{dropped}; {quantity(done.n_items, 'item')}.")


@click.command(short_help="Undo the last change: return to a former build.")
@click.argument("id", required=False)
@wait_option
def rollback(id: str | None) -> None:
    """Return to the build that was current before this one, or to the build ID, as builds lists
    them. So an add, remove, build, learn, tune or compact is undone at once. What was recorded
    stays recorded, and the builds after it stay, to return to them.

    \b
    Examples:
      qkvsearch -w shop rollback
      qkvsearch -w shop rollback 20240301-101500-3f9a2c
    """
    run = settings()
    engine = run.open_own()
    left = engine.snapshot.name
    entry = engine.rollback(id)
    path, created = engine.workspace.path, entry.created[:16].replace("T", " ")
    run.say(
        f"{path}: back to {entry.name}, by {entry.command}, of {created} (UTC); "
        f"{quantity(entry.items, 'item')}."
    )
    if left != entry.name:
        run.say(f"To undo that: qkvsearch -w {shlex.quote(str(path))} rollback {left}")


@click.command(short_help="Mend a damaged workspace.")
@wait_option
def repair() -> None:
    """Find every file that is not as it was written. What can be derived from what is sound, such
    as lexical keys from the catalog's texts, is made again; what cannot is named, and kept beside.
    A sound workspace stays as it is.

    \b
    Examples:
      qkvsearch -w shop repair
      qkvsearch -w shop info --verify && echo sound
    """
    from qkvsearch.engine import repair as repair_workspace

    run = settings()
    path = run.own_workspace()
    with run.progress() as progress:
        done = repair_workspace(path, wait=run.wait, say=run.say, progress=progress)
    run.say_notes(done.notes)
    for what in done.rebuilt:
        run.say(f"Made again: {what}.")
    for what in done.lost:
        run.say(f"Lost: {what}.")
    if not (done.rebuilt or done.lost or done.notes):
        run.say(f"{path}: nothing is damaged.")


@click.command(short_help="Delete a person: log, records and former builds.")
@click.argument("user")
@yes_option
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@wait_option
def forget(user: str, yes: bool, dry_run: bool) -> None:
    """Delete USER: their interactions in the log, what was recorded of them, and all former builds,
    for these held them too. Afterwards no file of the workspace has the id in it, and nothing can
    be undone. What was learned from them together with others stays until learn fits it again, and
    that is said.

    Copies of the workspace, and the files that it was built from, are not touched.

    \b
    Examples:
      qkvsearch -w shop forget 1017
      qkvsearch -w shop forget 1017 --yes
    """
    run = settings()
    engine = run.open_own()
    if not (yes or dry_run or is_asked()):
        raise click.UsageError("what forget deletes is gone for good: say so with --yes")
    path = engine.workspace.path
    if dry_run or not yes:
        would = engine.forget(user, dry_run=True)
        run.say(f"{path}: {_deleted(would)} would be deleted for good.")
        if dry_run:
            return
        confirm(f"Forget {user}?")
    with run.progress() as progress:
        done = engine.forget(user, progress=progress)
    run.say(f"{path}: {_deleted(done)} deleted.")
    run.say_notes(done.notes)


def _deleted(done: Forgotten) -> str:
    return (
        f"{quantity(done.interactions, 'interaction')}, {quantity(done.records, 'record')} and "
        f"{quantity(done.builds, 'former build')}"
    )
