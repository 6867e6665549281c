"""Encoders: `qkvsearch attend` shows attention within a text; `encode` and `export`, embeddings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.limits import QUERY
from qkvsearch.cli.commands import command, command_group
from qkvsearch.cli.context import DEFAULT_WORKSPACE, CommandContext, settings
from qkvsearch.cli.listing_table import cell_text
from qkvsearch.cli.render import UNESCAPED, Output, output_options, picture_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.errors import QkvError, quantity

if TYPE_CHECKING:
    import numpy as np

    from qkvsearch.text.encoded_text import AttentionMap, EncodedText

WEIGHT_FIELDS = ("query_position", "query", "key_position", "key", "weight", "visible")
HEAD_FIELDS = ("layer", "head")
EMBEDDING_FIELDS = ("text", "head", "embedding")
# Components of an embedding that a table shows; the other formats have all.
MAX_COMPONENTS = 4


@command(short_help="Show how much the words of a text attend to one another.")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--mask",
    type=click.Choice(["none", "padding", "causal"]),
    default="none",
    show_default=True,
    help="What words cannot attend to: nothing excluded, <PAD>, or later words.",
)
@click.option(
    "--hide",
    metavar="WORD",
    multiple=True,
    help="A word that nothing attends to, wherever it is in the text; may be repeated.",
)
@click.option(
    "--layer",
    type=click.IntRange(min=1),
    help="A transformer's layer, from 1.  [default: the last]",
)
@click.option(
    "--head",
    type=click.IntRange(min=1),
    help="A head of the layer, from 1.  [default: their mean]",
)
@click.option(
    "--encoder",
    help="minilm, e5, static or a model's folder.  [default: the workspace's encoder; without a "
    "workspace, the best one that is installed]",
)
@picture_options
def attend(
    text: tuple[str, ...],
    mask: str,
    hide: tuple[str, ...],
    layer: int | None,
    head: int | None,
    encoder: str | None,
    output: Output,
) -> None:
    """Show how much the words of a text attend to one another; `-` reads it from stdin.

    A row is the word that attends, and its weights add up to 100 %. A transformer has layers and
    heads to choose from, and cuts words into pieces: ## marks one that goes on with a word, ␣ a
    space alone. Without a transformer, this is attention without learned matrices (Q = K = V = X):
    words attend to similar words. An encoder learned from the catalog leaves out stop words and
    unknown words. `<PAD>` or `[PAD]` in the text is padding.

    \b
    Examples:
      qkvsearch attend "the bank of the river"
      qkvsearch attend "deep learning with attention <PAD>" --mask padding
      qkvsearch attend "the bank of the river" --hide river
      qkvsearch attend "it was too tired" --encoder minilm --layer 6 --head 4
      qkvsearch attend "the bank of the river" --encoder minilm -o bank.html
    """
    from qkvsearch.cli.heatmap import heat_map

    run = settings()
    sentence = sys.stdin.read(QUERY.value + 1) if text == ("-",) else " ".join(text)
    reading = _encoder(run, encoder).attend(sentence, mask, hide)
    _note_left_out(run, reading)
    n_layers, n_heads = reading.weights.shape[:2] if reading.has_layers else (None, None)
    map_ = reading.map(_index("layer", layer, n_layers), _index("head", head, n_heads))
    if output.format in ("html", "svg", "png"):
        _draw(output, reading, map_, sentence)
        return
    records = map_.to_records() if output.format != "table" else []
    fields = (*WEIGHT_FIELDS, *HEAD_FIELDS) if reading.has_layers else WEIGHT_FIELDS
    output.write(records, lambda: heat_map(map_), fields)


def _index(kind: str, number: int | None, n: int | None) -> int | None:
    """Return the index of a layer or a head that a person counts from 1. n: how many there are,
    None where there is none to choose. Raises `QkvError`.
    """
    if number is not None and n is not None and number > n:
        raise QkvError(f"no {kind} {number}: there are {kind}s 1 to {n}")
    return None if number is None else number - 1


def _draw(output: Output, reading: EncodedText, shown: AttentionMap, sentence: str) -> None:
    """Write the map as a picture, or the whole reading as a page."""
    from qkvsearch.cli.heatmap import head_name
    from qkvsearch.lessons.exports.attended import to_page, to_png, to_svg

    if not shown.tokens:
        raise QkvError("there are no words to draw")
    if output.format == "png":
        output.write_bytes(to_png(shown))
        return
    caption = head_name(shown).removesuffix(": ")
    output.write_document(
        {
            "html": lambda: to_page(reading, sentence, shown.layer, shown.head),
            "svg": lambda: to_svg(shown, caption),
        }
    )


def _encoder(run: CommandContext, name: str | None) -> Any:
    """Return the encoder by name, or the main one of the workspace. Where no workspace is named and
    there is none here, return the best installed one, with a message.
    """
    from qkvsearch.text.encoders import installed, pretrained

    if name is None and run.workspace is None and not DEFAULT_WORKSPACE.exists() and installed():
        # The transformer for English, if there is one: examples are mostly English.
        name = next(name for name in ("minilm", "e5", "static") if name in installed())
        run.message(f"No workspace here: using the encoder {name} (--encoder names another).")
    if name is not None:
        return pretrained(name)
    models = run.open().models
    return models.encoder(models.main_head)


def _note_left_out(run: CommandContext, reading: EncodedText) -> None:
    if not reading.tokens and reading.encoder == "corpus":
        run.message("Nothing to attend to: none of these words is in the catalog.")
    elif not reading.tokens:
        run.message("Nothing to attend to: there are no words.")
    elif reading.left_out:
        why = ", beyond the model's limit" if reading.has_layers else ""
        run.message(f"Left out{why}: {', '.join(reading.left_out)}")


@command(short_help="Turn texts into embeddings.")
@click.argument("texts", nargs=-1, required=True)
@click.option(
    "--head",
    "head_name",
    metavar="NAME",
    help="The dense head of the workspace whose encoder to use.  [default: the main one]",
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="static, minilm, e5 or a model's folder; no workspace is needed.",
)
@output_options
def encode(
    texts: tuple[str, ...],
    head_name: str | None,
    encoder: str | None,
    output: Output,
) -> None:
    """Turn TEXTS into embeddings with the encoder of the workspace; - reads them from stdin, one
    per line.

    Embeddings have length 1, or are zeros if the encoder knows no word of a text. Words that it
    does not know are listed as unread.

    \b
    Examples:
      qkvsearch -w talks encode "deep sea" "high mountains"
      qkvsearch -w talks encode - --format jsonl < queries.txt
      qkvsearch encode "deep sea" --encoder static -o deep.json
    """
    if encoder is not None and head_name is not None:
        raise click.UsageError("--head belongs to a workspace: leave out --head or --encoder")
    from qkvsearch._utils.validation import check_text

    inputs = [check_text("texts", text) for text in _inputs(texts)]
    if not inputs:
        raise QkvError("stdin has no text: write one per line")
    run = settings()
    if encoder is not None:
        from qkvsearch.text.encoders import pretrained

        name = encoder
        reader = pretrained(encoder)
    else:
        from qkvsearch.engine.export_embeddings import dense_head

        opened = run.open()
        name = dense_head(opened.models, head_name)
        reader = opened.models.encoder(name)
    with run.progress() as progress:
        embeddings = reader.encode_many(inputs, progress)
    rows = [_row(text, name, vector) for text, vector in zip(inputs, embeddings, strict=True)]
    for row in rows:
        if unread := reader.unread(row["text"]):
            row["unread"] = unread
    if n := int((~embeddings.any(axis=1)).sum()):
        run.message(f"{name} knows no word of {quantity(n, 'text')}: zeros.")
    if output.format in UNESCAPED:  # one cell, without loss of digits
        rows = [{**row, "embedding": json.dumps(row["embedding"])} for row in rows]
    output.write(rows, lambda: _table(rows), EMBEDDING_FIELDS)


def _inputs(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        if text == "-":
            with click.open_file("-", encoding="utf-8", errors="replace") as file:
                lines = file.read().removeprefix("\ufeff").split("\n")
            yield from (line.rstrip("\r") for line in lines if line.strip())
        else:
            yield text


def _row(text: str, name: str, vector: np.ndarray) -> dict[str, Any]:
    """Return a row with as many digits as a float32 needs."""
    return {"text": text, "head": name, "embedding": [float(str(x)) for x in vector]}


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = [("text", "wrap"), ("components", "right"), ("", "left"), ("unread", "wrap")]
    cells = [
        [
            cell_text(row["text"]),
            len(row["embedding"]),
            " ".join(f"{x:+.3f}" for x in row["embedding"][:MAX_COMPONENTS]) + " …",
            cell_text(", ".join(row.get("unread", []))),
        ]
        for row in rows
    ]
    return to_table(columns, cells, f"by {rows[0]['head']}; other formats have all components")


@command_group(short_help="Write embeddings to files for other programs.")
def export() -> None:
    """Write embeddings to files for other programs.

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
    help="The file: .safetensors, .parquet or .npz.",
)
@click.option(
    "--of",
    type=click.Choice(["items", "users"]),
    default="items",
    show_default=True,
    help="Items, or users, whose embeddings are computed now from their interactions.",
)
@click.option(
    "--head",
    "head_name",
    metavar="NAME",
    help="A dense head of search, or collaborative: learned from interactions.  [default: the main "
    "head of search]",
)
def embeddings(path: Path, of: str, head_name: str | None) -> None:
    """Write embeddings with their ids to a file. An error leaves no file.

    .safetensors has the tensor "embeddings" (float32, one row for each id) and, in its metadata,
    "ids" as a JSON list; .npz the arrays "embeddings" and "ids"; .parquet the columns "id" and
    "embedding".

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
    run.notes(done.notes)
    run.message(
        f"{path}: {done.head} embeddings of {quantity(done.rows, of.removesuffix('s'))}, "
        f"{quantity(done.components, 'component')} each."
    )
