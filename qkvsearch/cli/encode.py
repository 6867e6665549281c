"""`qkvsearch encode`: texts to embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import engine_option, settings
from qkvsearch.cli.listing import shown
from qkvsearch.cli.render import UNESCAPED, Output, output_options, to_table
from qkvsearch.errors import QkvError, quantity

if TYPE_CHECKING:
    import numpy as np

FIELDS = ("text", "head", "embedding")
# Components that a table shows of an embedding; the other formats have all.
SHOWN_COMPONENTS = 4


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
def command(
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
    output.write(rows, lambda: _table(rows), FIELDS)


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
