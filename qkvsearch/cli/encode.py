"""`qkvsearch attend`, `encode` and `export`: attention within a text, and embeddings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import CommandContext, engine_option, settings
from qkvsearch.cli.render import UNESCAPED, Output, output_options, shown, to_table
from qkvsearch.errors import QkvError, quantity

if TYPE_CHECKING:
    import numpy as np

    from qkvsearch.text.encoded_text import EncodedText

WEIGHT_FIELDS = ("query_position", "query", "key_position", "key", "weight", "visible")
HEAD_FIELDS = ("layer", "head")
COSINE_FIELDS = ("word", "after_layers", "cosine")
ALL = "all"
# Weights in a listing or an HTML page; all heads of a long text have millions.
MAX_LISTED = 1_000_000
PLOTTED = (".png", ".svg", ".html")
EMBEDDING_FIELDS = ("text", "head", "embedding")
# Components that a table shows of an embedding; the other formats have all.
SHOWN_COMPONENTS = 4


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
def attend(
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
        from qkvsearch.cli.attention_plot import write_maps

        write_maps(plot, maps, sentence)
    records = [row for one in maps for row in one.to_records()] if is_listed else []
    fields = (*WEIGHT_FIELDS, *HEAD_FIELDS) if reading.has_layers else WEIGHT_FIELDS
    output.write(records, lambda: small_multiples(maps) if is_all else heat_map(maps[0]), fields)


def _write_focus(reading: EncodedText, question: Question, output: Output) -> None:
    from qkvsearch.cli.heatmap import focus_table
    from qkvsearch.text.encoded_text import focus

    assert question.focus is not None
    found = focus(reading, question.focus, question.at, question.layer, question.one_head)
    if question.plot is not None:
        from qkvsearch.cli.attention_plot import write_maps

        write_maps(
            question.plot, [found.map], f"{found.selected.query} attends to {found.selected.key}"
        )
    fields = (*WEIGHT_FIELDS, *HEAD_FIELDS) if reading.has_layers else WEIGHT_FIELDS
    output.write([one.to_record() for one in found.attended], lambda: focus_table(found), fields)


def _write_comparison(
    reading: EncodedText, other: EncodedText, question: Question, output: Output, both: str
) -> None:
    from qkvsearch.cli.heatmap import cosine_table
    from qkvsearch.text.encoded_text import compare

    found = compare(reading, other, question.focus)
    if question.plot is not None:
        from qkvsearch.cli.attention_plot import write_comparison

        write_comparison(question.plot, found, both)
    output.write(found.to_records(), lambda: cosine_table(found), COSINE_FIELDS)


@click.command(short_help="Turn texts into embeddings.")
@click.argument("texts", nargs=-1, required=True)
@click.option(
    "--head",
    "head_name",
    metavar="NAME",
    help="The dense head of the workspace whose encoder reads.  [default: the main one]",
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="static, minilm or a model's folder, as installed; no workspace is asked.",
)
@engine_option
@output_options
def encode(
    texts: tuple[str, ...],
    head_name: str | None,
    encoder: str | None,
    engine: str | None,
    output: Output,
) -> None:
    """Turn TEXTS into embeddings by the encoder of the workspace; - reads them from stdin, one a
    line.

    Embeddings have length 1, or are zeros where nothing of a text is known. Words that are no part
    of one are listed as unread.

    \b
    Examples:
      qkvsearch encode "deep sea" "high mountains"
      qkvsearch -w talks encode - --format jsonl < queries.txt
      qkvsearch encode "deep sea" --encoder static -o deep.json
    """
    if encoder is not None and head_name is not None:
        raise click.UsageError("--head is of a workspace, --encoder needs none: one of the two")
    from qkvsearch._utils.validation import check_text

    asked = [check_text("texts", text) for text in _given(texts)]
    if not asked:
        raise QkvError("stdin has no text: one a line")
    run = settings()
    if encoder is not None:
        from qkvsearch.text.encoders import pretrained

        name, reader, path = encoder, pretrained(encoder), None
    else:
        from qkvsearch.engine.export_embeddings import dense_head

        opened = run.open(sample=None if output.path is not None else "movies")
        name, path = dense_head(opened.models, head_name), opened.workspace.path
        reader = opened.models.encoder(name)
    with run.progress() as progress:
        if engine is None:
            found = reader.encode_many(asked, progress)
        else:
            from qkvsearch.engine.remote_export import encode_elsewhere

            found = encode_elsewhere(engine, asked, path, name, progress)
    rows = [_row(text, name, vector) for text, vector in zip(asked, found, strict=True)]
    for row in rows:
        if unread := reader.unread(row["text"]):
            row["unread"] = unread
    if n := int((~found.any(axis=1)).sum()):
        run.say(f"{name} knows nothing of {quantity(n, 'text')}: zeros.")
    if output.format in UNESCAPED:  # as one cell that reads back to the last digit
        rows = [{**row, "embedding": json.dumps(row["embedding"])} for row in rows]
    output.write(rows, lambda: _table(rows), EMBEDDING_FIELDS)


def _given(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        if text == "-":
            with click.open_file("-", encoding="utf-8", errors="replace") as file:
                lines = file.read().removeprefix("\ufeff").split("\n")
            yield from (line.rstrip("\r") for line in lines if line.strip())
        else:
            yield text


def _row(text: str, name: str, vector: np.ndarray) -> dict[str, Any]:
    """With as many digits as tell one float32 from another."""
    return {"text": text, "head": name, "embedding": [float(str(x)) for x in vector]}


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = [("text", "wrap"), ("components", "right"), ("", "left"), ("unread", "wrap")]
    cells = [
        [
            shown(row["text"]),
            len(row["embedding"]),
            " ".join(f"{x:+.3f}" for x in row["embedding"][:SHOWN_COMPONENTS]) + " …",
            shown(", ".join(row.get("unread", []))),
        ]
        for row in rows
    ]
    return to_table(columns, cells, f"by {rows[0]['head']}; other formats have all components")


@click.group(short_help="Write what was learned to files for other programs.")
def export() -> None:
    """Write what was learned to files for other programs.

    \b
    Example:
      qkvsearch -w talks export embeddings --to talks.parquet
    """


@export.command()
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file: .safetensors, .parquet or .npz, as its name says.",
)
@click.option(
    "--of",
    type=click.Choice(["items", "users"]),
    default="items",
    show_default=True,
    help="Whose; those of users are learned from interactions, each solved now.",
)
@click.option(
    "--head",
    "head_name",
    metavar="NAME",
    help="A dense head of search, or collaborative: learned from interactions.  [default: the "
    "main one of search]",
)
def embeddings(path: Path, of: str, head_name: str | None) -> None:
    """Write embeddings with their ids to a file, which appears whole or not at all.

    .safetensors has the tensor "embeddings" (float32, a row an id) and, in its metadata, "ids" as a
    JSON list; .npz the arrays "embeddings" and "ids"; .parquet the columns "id" and "embedding".

    \b
    Examples:
      qkvsearch -w talks export embeddings --to talks.safetensors
      qkvsearch -w films export embeddings --to films.npz --head collaborative
      qkvsearch -w films export embeddings --to people.parquet --of users
    """
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        done = engine.export_embeddings(path, of=of, head=head_name, progress=progress)
    run.say_notes(done.notes)
    run.say(
        f"{path}: {done.head} embeddings of {quantity(done.rows, of.removesuffix('s'))}, "
        f"{done.components:,} components each."
    )
