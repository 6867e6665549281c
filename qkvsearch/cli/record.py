"""`qkvsearch record`: one more interaction, known to the next `recommend`."""

import click

from qkvsearch.cli.context import settings


# A rating may be below 0, and would be taken for an option.
@click.command(
    short_help="Record an interaction of a user with an item.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("user")
@click.argument("item")
@click.argument("rating", type=float, required=False)
def command(user: str, item: str, rating: float | None) -> None:
    """Record that USER interacted with ITEM, and with which RATING, if any.

    The next `recommend` knows it, without a rebuild. A new user is created; ITEM, an id or a title,
    must be in the catalog.

    \b
    Example:
      qkvsearch -w films record 1017 "Heat (1995)" 4.5
    """
    run = settings()
    engine = run.open_named(
        "name a workspace to record in, such as: qkvsearch -w films build sample:movies"
    )
    id_, title = engine.record(user, item, rating)
    stars = "" if rating is None else f", rated {rating:g}"
    run.say(f"Recorded: user {user}, {title} ({id_}){stars}.")
