"""The text encoders that a build can have, by name, and how each is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qkvsearch.errors import QkvError, suggest
from qkvsearch.labelled import LabelledVectors


class TextEncoder(Protocol):
    """Text to labelled vectors that add up to an embedding of length 1, or to nothing.

    is_pretrained: whether it was trained elsewhere, so that a build stores only what it learned
    from the catalogue. limit: the most tokens of a text that it reads, None for no limit.
    """

    @property
    def is_pretrained(self) -> bool: ...

    @property
    def limit(self) -> int | None: ...

    def encode(self, text: str) -> LabelledVectors: ...

    def encode_many(self, texts: Sequence[str]) -> np.ndarray: ...

    def sequence(self, text: str) -> LabelledVectors: ...

    def unknown(self, text: str) -> list[str]: ...

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """What it learned from the catalogue, to be stored with a build; by name."""
        ...


# Of each choice: its dense heads with their weights beside the lexical head's, which is first. The
# last is the one that gave its name. Chosen on TED's dev queries and on queries made of catalogues.
CHOICES: Mapping[str, Mapping[str, float]] = {
    "corpus": {"lexical": 0.3, "lsa": 0.1, "contrastive": 0.6},
    "static": {"lexical": 0.15, "lsa": 0.05, "contrastive": 0.3, "static": 0.5},
    "minilm": {"lexical": 0.1, "lsa": 0.05, "contrastive": 0.1, "static": 0.2, "minilm": 0.55},
}
LEARNED = ("lsa", "contrastive")


def prior_weights(choice: str) -> dict[str, float]:
    """The heads of an encoder choice, a name or a model's folder, and their weights.

    A folder's head is called "transformer". Without the package that carries the static table its
    head is left out. Raises `QkvError` for what is neither.
    """
    if choice in CHOICES:
        weights = dict(CHOICES[choice])
    elif Path(choice).is_dir():
        weights = dict(CHOICES["minilm"])
        weights["transformer"] = weights.pop("minilm")
    else:
        close = suggest(choice, ["auto", *CHOICES])
        known = ", ".join(["auto", *CHOICES])
        raise QkvError(f"no encoder {choice!r}{close} (there is {known}, or a model's folder)")
    from qkvsearch.texts.pretrained.static import find_package

    if choice != "static" and "static" in weights and find_package() is None:
        del weights["static"]
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def fitted_encoder(
    head: str,
    fields: Sequence[Sequence[str]],
    choice: str = "corpus",
    pretrained: TextEncoder | None = None,
) -> TextEncoder:
    """The encoder of a dense head: learned from these columns of texts, weighted by them, or the
    pretrained one that was chosen, which is read unless it is given.
    """
    if head in LEARNED:
        return learned_encoder(head, fields)[0]
    texts = ["\n".join(columns) for columns in zip(*fields, strict=True)]
    encoder: Any = pretrained or pretrained_encoder(head, choice)
    return encoder.weighted(np.sqrt(encoder.idf(texts))) if head == "static" else encoder


def learned_encoder(
    head: str, fields: Sequence[Sequence[str]], epochs: int | None = None
) -> tuple[TextEncoder, int | None]:
    """The encoder of a head that is learned from the catalogue, and for how many epochs it was
    trained, None where it is not trained by epochs. `epochs`: as many, without measuring how many
    are best.
    """
    if head == "lsa":
        from qkvsearch.texts.learned.lsa import CorpusEncoder

        texts = ["\n".join(columns) for columns in zip(*fields, strict=True)]
        return CorpusEncoder().fit(texts).encoder_, None
    from qkvsearch.texts.learned.contrastive import ContrastiveEncoder

    settings: dict[str, Any] = {} if epochs is None else {"epochs": epochs, "held_out": 0}
    model = ContrastiveEncoder(**settings).fit(fields)
    return model.encoder_, model.n_epochs_  # type: ignore[return-value]


def pretrained_encoder(head: str, choice: str) -> Any:
    """What is installed for a dense head that is not learned from the catalogue: the static table,
    unweighted, or the transformer of the name `choice` or in that folder. Raises `QkvError`.
    """
    from qkvsearch.texts.pretrained.static import StaticEncoder

    return StaticEncoder.from_package() if head == "static" else transformer(choice)


def transformer(choice: str) -> TextEncoder:
    """The pretrained transformer of that name, or in that folder. Raises `QkvError`."""
    from qkvsearch.texts.pretrained.fetch import find
    from qkvsearch.texts.pretrained.transformer import TransformerEncoder

    folder = find(choice) if choice in CHOICES else Path(choice)
    if folder is None:
        raise QkvError(f"{choice} is not installed: run `qkvsearch model fetch {choice}`")
    return TransformerEncoder.from_folder(folder)
