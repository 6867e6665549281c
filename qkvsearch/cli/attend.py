"""`qkvsearch attend`: a text's own attention, as a heat map in the terminal or in a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import CommandContext, settings
from qkvsearch.cli.render import Output, output_options
from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from qkvsearch.text.encoded_text import EncodedText

FIELDS = ("query_position", "query", "key_position", "key", "weight", "visible")
PLACE = ("layer", "head")
COSINES = ("word", "after_layers", "cosine")
ALL = "all"
# Weights in a listing or an HTML page; all heads of a long text have millions.
MAX_LISTED = 1_000_000
PLOTTED = (".png", ".svg", ".html")


class HeadNumber(click.ParamType):
    """A head's number, or all heads."""

    name = "head"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | str:
        if value == ALL or isinstance(value, int):
            return value
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {ALL!r}", param, ctx)


@dataclass(frozen=True)
class Question:
    """What is asked of a text's attention, and the file to draw it into."""

    layer: int | None
    head: int | str | None
    focus: str | None
    at: str | None
    against: str | None
    plot: Path | None

    def __post_init__(self) -> None:
        if self.plot is not None and self.plot.suffix.lower() not in PLOTTED:
            raise click.BadParameter(f"a plot is {', '.join(PLOTTED)}", param_hint="--plot")
        if self.at is not None and self.focus is None:
            raise click.UsageError("--at WORD says what --focus WORD attends to: give both")
        if self.against is None:
            return
        if (self.layer, self.head, self.at) != (None, None, None):
            raise click.UsageError("--against shows every layer: leave out --layer, --head, --at")

    @property
    def one_head(self) -> int | None:
        return self.head if isinstance(self.head, int) else None


@click.command(short_help="Show how much the words of a text attend to one another.")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--mask",
    type=click.Choice(["none", "padding", "causal"]),
    default="none",
    show_default=True,
    help="What is hidden from a word: nothing, <PAD>, or the words after it.",
)
@click.option("--layer", type=int, help="A transformer's layer, from 0.  [default: the last]")
@click.option(
    "--head",
    type=HeadNumber(),
    metavar="N|all",
    help="A head of it, from 0, or all at once.  [default: their mean]",
)
@click.option("--focus", metavar="WORD", help="What this word attends to, and in which head most.")
@click.option("--at", metavar="WORD", help="With --focus: the word that it attends to.")
@click.option(
    "--against",
    metavar="TEXT",
    help="How alike the words of both texts are to themselves, layer by layer.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw it into a file too: .html, .png or .svg.",
)
@click.option(
    "--encoder", help="minilm, static or a model's folder.  [default: the workspace's encoder]"
)
@output_options
def command(
    text: tuple[str, ...],
    mask: str,
    encoder: str | None,
    output: Output,
    **asked: Any,
) -> None:
    """Show how much the words of a text attend to one another; `-` reads it from stdin.

    A row is the word that attends, and its weights add up to 100 %. A catalog's own encoder leaves
    out stop words and words it does not have; a transformer cuts words into pieces, marked ##, and
    has layers and heads to choose from. --focus adds up the weights of a word's pieces.

    \b
    Examples:
      qkvsearch attend "the bank of the river"
      qkvsearch attend "deep learning with attention <PAD>" --mask padding
      qkvsearch attend "it was too tired" --encoder minilm --layer 5 --head all
      qkvsearch attend "the dog ran as it was late" --encoder minilm --focus it
      qkvsearch attend "river bank" --encoder minilm --against "bank loan"
    """
    question, run = Question(**asked), settings()
    sentence = sys.stdin.read() if text == ("-",) else " ".join(text)
    found = _encoder(run, encoder, None if output.path is not None else "videos")
    reading = found.attend(sentence, mask)
    _say_what_is_missing(run, reading)
    if question.against is not None:
        other = found.attend(question.against, mask)
        _say_what_is_missing(run, other)
        both = f"{sentence.strip()} / {question.against}"
        _write_comparison(reading, other, question, output, both)
    elif question.focus is not None:
        _write_focus(reading, question, output)
    else:
        _write_maps(reading, question, output, sentence)
    if question.plot is not None:
        run.say(f"Wrote {question.plot}.")


def _encoder(run: CommandContext, name: str | None, sample: str | None) -> Any:
    """The one asked for, or that of the workspace, or of a sample."""
    from qkvsearch.text.encoders import pretrained

    if name is not None:
        return pretrained(name)
    models = run.open(sample).models
    return models.encoder(models.main_head)


def _say_what_is_missing(run: CommandContext, reading: EncodedText) -> None:
    if not reading.tokens and reading.encoder == "corpus":
        run.say("Nothing to attend to: none of these words is in the catalog.")
    elif not reading.tokens:
        run.say("Nothing to attend to: there are no words.")
    elif reading.left_out:
        why = ", beyond the model's limit" if reading.has_layers else ""
        run.say(f"Left out{why}: {', '.join(reading.left_out)}")


def _write_maps(reading: EncodedText, question: Question, output: Output, sentence: str) -> None:
    from qkvsearch.cli.heatmap import heat_map, small_multiples

    is_all, layer, plot = question.head == ALL, question.layer, question.plot
    maps = reading.heads(layer) if is_all else [reading.map(layer, question.one_head)]
    n_weights = sum(one.weights.size for one in maps)
    is_listed = output.format != "table"
    if n_weights > MAX_LISTED and (is_listed or plot is not None):
        raise QkvError(f"{n_weights:,} weights are too many for a file; name a --layer or a --head")
    if plot is not None:
        from qkvsearch.cli.plot import write_maps

        write_maps(plot, maps, sentence)
    records = [row for one in maps for row in one.to_records()] if is_listed else []
    fields = (*FIELDS, *PLACE) if reading.has_layers else FIELDS
    output.write(records, lambda: small_multiples(maps) if is_all else heat_map(maps[0]), fields)


def _write_focus(reading: EncodedText, question: Question, output: Output) -> None:
    from qkvsearch.cli.heatmap import focus_table
    from qkvsearch.text.encoded_text import focus

    assert question.focus is not None
    found = focus(reading, question.focus, question.at, question.layer, question.one_head)
    if question.plot is not None:
        from qkvsearch.cli.plot import write_maps

        write_maps(
            question.plot, [found.map], f"{found.selected.query} attends to {found.selected.key}"
        )
    fields = (*FIELDS, *PLACE) if reading.has_layers else FIELDS
    output.write([one.to_record() for one in found.attended], lambda: focus_table(found), fields)


def _write_comparison(
    reading: EncodedText, other: EncodedText, question: Question, output: Output, both: str
) -> None:
    from qkvsearch.cli.heatmap import cosine_table
    from qkvsearch.text.encoded_text import compare

    found = compare(reading, other, question.focus)
    if question.plot is not None:
        from qkvsearch.cli.plot import write_comparison

        write_comparison(question.plot, found, both)
    output.write(found.to_records(), lambda: cosine_table(found), COSINES)
