"""`attend`: the attention within a text."""

from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch._utils.limits import ATTENDED
from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError, suggest
from qkvsearch.text.encoded_text import EncodedText, compare
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.pretrained.fetch import find
from qkvsearch.text.text_encoder import TextEncoder
from qkvsearch.web.api.request_parameters import LimitedText, Parameters
from qkvsearch.web.api.responses import RequestService, as_json, described_by
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.problems import Problem, log

router = APIRouter(tags=["attend"], route_class=StrictRoute)
# Weights in an answer, of seven characters each: less than a megabyte.
MAX_WEIGHTS = 140_000
DECIMALS = 4
# Beside the encoder of the build.
INSTALLED = ["minilm", "e5", "static"]


class AttendParameters(Parameters):
    """Which text, through which encoder, and which of its heads."""

    text: Annotated[
        LimitedText,
        Field(
            description=f"An answer has at most {MAX_WEIGHTS:,} weights, words × words × "
            "heads: for 72 heads, 44 words.",
            examples=["the bank of the river"],
        ),
    ]
    mask: Annotated[
        Literal["none", "padding", "causal"],
        Field(description="What a word cannot attend to: nothing excluded, <PAD>, or later words."),
    ] = "none"
    hide: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...],
        Field(
            max_length=ATTENDED.value,
            fail_fast=True,
            description="Words that nothing attends to either, by their place in `words`, from 0.",
        ),
    ] = ()
    layer: Annotated[
        int | None,
        Field(ge=0, description="One layer, from 0, where people count from 1; else all."),
    ] = None
    head: Annotated[int | None, Field(ge=0, description="One head, from 0; else all.")] = None
    against: Annotated[
        LimitedText,
        Field(description="Another text: the similarity of each shared word to itself there."),
    ] = ""
    encoder: Annotated[
        LimitedText | None,
        Field(
            description="minilm, e5 or static, where installed; by default the build's main one."
        ),
    ] = None


class HeadMap(BaseModel):
    """A row adds up to 1; null is what the mask hides. layer, head: null where there are none."""

    layer: int | None
    head: int | None
    weights: list[list[float | None]]


class Cosines(BaseModel):
    """The similarity of each shared word to itself in the other text: a row before any attention,
    then one after each layer.
    """

    words: list[str]
    cosines: list[list[float]]


class Attention(BaseModel):
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


@router.get(
    "/attend", responses=described_by(Attention), summary="Show the attention within a text"
)
async def attend(
    service: RequestService, parameters: Annotated[AttendParameters, Query()]
) -> Response:
    """A word's row is the mean of the rows of its pieces, and its column their sum."""
    return await service.ask(lambda engine: as_json(attend_within(engine, parameters)))


def attend_within(engine: Engine, parameters: AttendParameters) -> dict[str, Any]:
    """Return the fields of `Attention`. Raises `QkvError`, and `Problem` for too many weights."""
    models = engine.models
    name = models.main_head if parameters.encoder is None else parameters.encoder
    encoder = models.encoder(name) if name == models.main_head else _installed(name)
    return answer_of(name, encoder, parameters)


def answer_of(name: str, encoder: TextEncoder, parameters: AttendParameters) -> dict[str, Any]:
    """Return the fields of `Attention` by this encoder. Raises as `attend_within` does."""
    reading = encoder.attend(parameters.text, parameters.mask, parameters.hide)
    maps = _maps(reading, parameters.layer, parameters.head)
    notes = _missing(reading)
    return {
        "encoder": name,
        "mask": parameters.mask,
        "words": reading.words,
        "tokens": reading.tokens,
        "owners": reading.owners.tolist(),
        "layers": len(reading.weights) if reading.has_layers else 0,
        "heads": reading.weights.shape[1] if reading.has_layers else 0,
        "maps": maps,
        "against": _cosines(encoder, reading, parameters, notes),
        "notes": notes,
    }


@cache
def _installed(name: str) -> TextEncoder:
    """Read a pretrained encoder once a process, by its name: clients may not name a folder."""
    if name not in INSTALLED:
        available = ", ".join(INSTALLED)
        raise QkvError(
            f"`encoder`: no encoder {name!r}{suggest(name, INSTALLED)} (there is {available})"
        )
    try:
        return pretrained(name)
    except QkvError as error:
        if find(name) is None:  # the message says how to install it
            raise
        # Files that are damaged are named in the log alone.
        log.error("%s", error)
        missing = f"`encoder`: {name} cannot be used here; the server's log says why"
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, missing) from None


def _maps(reading: EncodedText, layer: int | None, head: int | None) -> list[dict[str, Any]]:
    if reading.has_layers or (layer, head) != (None, None):
        indices = reading.head_indices(layer, head)
    else:
        indices = [(0, 0)]
    m = len(reading.words)
    if len(indices) * m * m > MAX_WEIGHTS:
        heads = f" in {len(indices)} heads" if len(indices) > 1 else ""
        raise Problem(
            400,
            f"`text`: {m} words{heads} have {len(indices) * m * m:,} weights, and an answer "
            f"{MAX_WEIGHTS:,} at most: shorten it{', or ask for one `layer`' if heads else ''}",
        )
    weights = reading.word_weights().astype(np.float64).round(DECIMALS)
    # A word is as visible as its first piece.
    firsts = np.searchsorted(reading.owners, np.arange(m))
    masked = weights.astype(object)
    masked[..., ~reading.mask[np.ix_(firsts, firsts)]] = None
    names = indices if reading.has_layers else [(None, None)]
    return [
        {"layer": name[0], "head": name[1], "weights": masked[index].tolist()}
        for name, index in zip(names, indices, strict=True)
    ]


def _missing(reading: EncodedText) -> list[str]:
    if not reading.words:
        return ["nothing to attend to: there are no words that the encoder knows"]
    if reading.left_out:
        return [f"left out, for the encoder does not read it: {', '.join(reading.left_out)}"]
    return []


def _cosines(
    encoder: TextEncoder, reading: EncodedText, parameters: AttendParameters, notes: list[str]
) -> dict[str, Any] | None:
    if not parameters.against.strip():
        return None
    other = encoder.attend(parameters.against, parameters.mask)
    try:
        comparison = compare(reading, other)
    except QkvError as error:
        notes.append(str(error))
        return None
    cosines = comparison.cosines.astype(np.float64).round(DECIMALS)
    return {"words": comparison.words, "cosines": cosines.tolist()}
