"""`qkvsearch demo`: commands that search, recommend and attend on the bundled samples."""

import shlex
from collections.abc import Sequence

import click

from qkvsearch.cli.commands import command
from qkvsearch.cli.context import settings
from qkvsearch.errors import install

VIDEOS = ("-w", "sample:videos")
FILMS = ("-w", "sample:movies")
QUERY = "attention in a transformer"
# What a command shows, and its words.
STEPS = (
    (
        "Search: the query is a text, the keys are the videos' words and vectors.",
        (*VIDEOS, "search", QUERY, "-k", "4"),
    ),
    (
        "Why the first one? What each word adds, and what an average item has.",
        (*VIDEOS, "search", QUERY, "-k", "1", "--explain"),
    ),
    (
        "Recommend: the query is a person, made from what they like; the keys, films.",
        (*FILMS, "recommend", "--like", "Up", "--like", "Coco", "-k", "2", "--explain"),
    ),
)
LESSON = (
    "How it works, by the course: one drawing of query, keys, values and the mix.",
    ("teach", "ask-match-mix", "--step", "2"),
)
# Of each transformer, the layer and the head in which “attention” attends most to “transformer”.
HEADS = {"minilm": ("1", "4"), "e5": ("1", "12")}


def attend_step(model: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the step that shows how words attend to each other. model: an installed transformer,
    None for attention without learned matrices.
    """
    if model is None:
        return (
            "Attend: the words of a text are queries, keys and values at once.",
            (*VIDEOS, "attend", "guitar bass fishing lake"),
        )
    layer, head = HEADS[model]
    return (
        "Attend: before it is compared, the words of the query attend to one another.",
        ("attend", QUERY, "--encoder", model, "--layer", layer, "--head", head),
    )


@command(short_help="See search, recommendation and their reasons on sample data.")
def demo() -> None:
    """See search, recommendation and their reasons on the bundled films and videos.

    \b
    Example:
      qkvsearch demo
    """
    from qkvsearch.cli import group
    from qkvsearch.text.encoders import installed

    click.echo("One formula, softmax(QKᵀ/√d + mask)·V: a query meets keys, and values answer.")
    installed_model = next((name for name in HEADS if name in installed()), None)
    for what, words in (*STEPS, attend_step(installed_model)):
        _show(group, what, words)
    if installed_model is None:
        missing = "qkvsearch model fetch minilm"
        if not installed():
            missing = f"{install('encoders')} && {missing}"
        click.echo("\nThe words above attend by what is similar.")
        click.echo(f"A transformer has learned what to attend to:\n{missing}")
    click.echo("\nIn the browser: qkvsearch serve --demo. Your own files: qkvsearch build --help")
    _show(group, *LESSON)


def _show(group: click.Group, what: str, words: Sequence[str]) -> None:
    """Say what a command shows, and run it."""
    quiet = ["-q"] if settings().quiet else []
    click.echo(f"\n{what}")
    click.echo(click.style(f"$ qkvsearch {shlex.join(words)}", bold=True))
    group.main([*quiet, *words], prog_name="qkvsearch", standalone_mode=False)
