"""`attend` and `encode`: a text's own attention, and the vectors of texts."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.engine.export_embeddings import dense_head
from qkvsearch.errors import QkvError, suggest
from qkvsearch.text.encoded_text import EncodedText, compare
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.text_encoder import TextEncoder
from qkvsearch.web.api.answers import Asked, as_json, shown
from qkvsearch.web.api.questions import BATCH, QueryParameters, Text
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["attend"])
# Weights in an answer, of seven characters each: less than a megabyte.
MOST_WEIGHTS = 140_000
DECIMALS = 4
# Beside the encoder of the build.
INSTALLED = ["minilm", "static"]
Head = Annotated[Text | None, Field(description="A dense head; by default the main one.")]


class AttendQuestion(QueryParameters):
    """Which text, through which encoder, and which of its heads."""

    text: Annotated[
        Text,
        Field(
            description=f"Of an answer's maps, words × words × heads, at most {MOST_WEIGHTS:,} "
            "weights are given: of 72 heads those of 44 words.",
            examples=["the bank of the river"],
        ),
    ]
    mask: Annotated[
        Literal["none", "padding", "causal"],
        Field(description="What is hidden from a word: nothing, <PAD>, or the words after it."),
    ] = "none"
    layer: Annotated[int | None, Field(ge=0, description="One layer, from 0; else all.")] = None
    head: Annotated[int | None, Field(ge=0, description="One head, from 0; else all.")] = None
    against: Annotated[
        Text, Field(description="Another text: how alike the words of both are to themselves.")
    ] = ""
    encoder: Annotated[
        Text | None,
        Field(description="minilm or static, where installed; by default the build's main one."),
    ] = None


class HeadMap(BaseModel):
    """What each word attends to: a row adds up to 1, null is what the mask hides. layer, head: null
    where there are none.
    """

    layer: int | None
    head: int | None
    weights: list[list[float | None]]


class Cosines(BaseModel):
    """Of words that are in both texts, each with itself in the other: a row before any attention,
    then one after each layer.
    """

    words: list[str]
    cosines: list[list[float]]


class Attended(BaseModel):
    """What an encoder's attention makes of a text. tokens: the pieces that it reads; owners: the
    word of each. layers, heads: how many there are, 0 where there are none to choose from.
    """

    encoder: str
    mask: str
    notes: list[str]
    words: list[str]
    tokens: list[str]
    owners: list[int]
    layers: int
    heads: int
    maps: list[HeadMap]
    against: Cosines | None


@router.get("/attend", responses=shown(Attended), summary="A text's own attention")
async def attend(service: Asked, question: Annotated[AttendQuestion, Query()]) -> Response:
    """Word by word: a word's row is the mean of its pieces', its column their sum."""
    return await service.ask(lambda engine: as_json(attended(engine, question)))


def attended(engine: Engine, question: AttendQuestion) -> dict[str, Any]:
    """The answer. Raises `QkvError` for a layer or head that is not there, and for too many words;
    `Problem` for too many weights.
    """
    models = engine.models
    name = models.main_head if question.encoder is None else question.encoder
    encoder = models.encoder(name) if name == models.main_head else _installed(name)
    reading = encoder.attend(question.text, question.mask)
    maps = _maps(reading, question.layer, question.head)
    notes = _missing(reading)
    return {
        "encoder": name,
        "mask": question.mask,
        "words": reading.words,
        "tokens": reading.tokens,
        "owners": reading.owners.tolist(),
        "layers": len(reading.weights) if reading.has_layers else 0,
        "heads": reading.weights.shape[1] if reading.has_layers else 0,
        "maps": maps,
        "against": _cosines(encoder, reading, question, notes),
        "notes": notes,
    }


def _installed(name: str) -> TextEncoder:
    """By name alone, for a folder is nothing that a client may name."""
    if name not in INSTALLED:
        known = ", ".join(INSTALLED)
        raise QkvError(
            f"`encoder`: no encoder {name!r}{suggest(name, INSTALLED)} (there is {known})"
        )
    return _read(name)


@cache
def _read(name: str) -> TextEncoder:
    """Once a process, since its files do not change."""
    return pretrained(name)


def _maps(reading: EncodedText, layer: int | None, head: int | None) -> list[dict[str, Any]]:
    if reading.has_layers or (layer, head) != (None, None):
        places = reading.head_indices(layer, head)
    else:
        places = [(0, 0)]
    m = len(reading.words)
    if len(places) * m * m > MOST_WEIGHTS:
        heads = f" in {len(places)} heads" if len(places) > 1 else ""
        raise Problem(
            400,
            f"`text`: {m} words{heads} have {len(places) * m * m:,} weights, and an answer "
            f"{MOST_WEIGHTS:,} at most: shorten it{', or ask for one `layer`' if heads else ''}",
        )
    weights = reading.word_weights().astype(np.float64).round(DECIMALS)
    # A word is as visible as its first piece.
    firsts = np.searchsorted(reading.owners, np.arange(m))
    given = weights.astype(object)
    given[..., ~reading.mask[np.ix_(firsts, firsts)]] = None
    names = places if reading.has_layers else [(None, None)]
    return [
        {"layer": named[0], "head": named[1], "weights": given[place].tolist()}
        for named, place in zip(names, places, strict=True)
    ]


def _missing(reading: EncodedText) -> list[str]:
    if not reading.words:
        return ["nothing to attend to: there are no words that the encoder knows"]
    if reading.left_out:
        return [f"left out, for the encoder does not read it: {', '.join(reading.left_out)}"]
    return []


def _cosines(
    encoder: TextEncoder, reading: EncodedText, question: AttendQuestion, notes: list[str]
) -> dict[str, Any] | None:
    if not question.against.strip():
        return None
    other = encoder.attend(question.against, question.mask)
    try:
        found = compare(reading, other)
    except QkvError as error:
        notes.append(str(error))
        return None
    cosines = found.cosines.astype(np.float64).round(DECIMALS)
    return {"words": found.words, "cosines": cosines.tolist()}


# --- vectors ---


class EncodeQuestion(QueryParameters):
    """Which text, and by which head's encoder."""

    text: Annotated[Text, Field(description="What to encode.", examples=["the bank of the river"])]
    head: Head = None


class EncodeQuestions(QueryParameters):
    """Which texts."""

    texts: Annotated[
        list[Text], BATCH, Field(examples=[["the bank of the river", "a loan of the bank"]])
    ]
    head: Head = None


class Encoded(BaseModel):
    """A vector a text, of length 1, or zeros for a text of which the head knows nothing."""

    head: str
    components: int
    vectors: list[list[float]]


@router.get("/encode", responses=shown(Encoded), summary="The vector of a text")
async def encode(service: Asked, question: Annotated[EncodeQuestion, Query()]) -> Response:
    """By the encoder of a dense head; items' keys of this head are compared with it."""
    asked = EncodeQuestions(texts=[question.text], head=question.head)
    return await service.ask(lambda engine: as_json(encoded(engine, asked)))


@router.post("/encode", responses=shown(Encoded), summary="The vectors of several texts")
async def encode_batch(service: Asked, questions: EncodeQuestions) -> Response:
    """In their order."""
    return await service.ask(lambda engine: as_json(encoded(engine, questions)))


def encoded(engine: Engine, questions: EncodeQuestions) -> dict[str, Any]:
    """The answer. Raises `QkvError` for a head that is not there."""
    build = engine.index  # one build for the name and for the vectors
    head = dense_head(build.models, questions.head)
    vectors = build.encode(questions.texts, head=head)
    return {"head": head, "components": vectors.shape[1], "vectors": _shortest(vectors)}


def _shortest(vectors: np.ndarray) -> list[list[float]]:
    """With the fewest digits that float32 needs, half of what float64 would write."""
    return [[float(str(x)) for x in row] for row in vectors]
