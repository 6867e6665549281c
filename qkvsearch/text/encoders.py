"""The text encoders of a build by name: how each is created, its weight, and the default choice.

To add one, write a `TextEncoder` in `learned` or `pretrained`, register it in `DENSE_HEADS`, and
add its weights to `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch.errors import QkvError, install, suggest
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.languages import ENGLISH
from qkvsearch.text.text_encoder import TextEncoder
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from qkvsearch.text.analyzed import AnalyzedTexts

Columns = Sequence[Sequence[str]]


class FittedEncoder(NamedTuple):
    """A learned encoder. epochs: the number of training epochs, or None."""

    encoder: TextEncoder
    epochs: int | None


def _learn_lsa(columns: Sequence[AnalyzedTexts], epochs: int | None) -> FittedEncoder:
    from qkvsearch.text.analyzed import AnalyzedTexts
    from qkvsearch.text.learned.svd import latent_semantic_encoder

    return FittedEncoder(latent_semantic_encoder(AnalyzedTexts.joined(columns)), None)


def _learn_contrastive(columns: Sequence[AnalyzedTexts], epochs: int | None) -> FittedEncoder:
    from qkvsearch.text.learned.contrastive import ContrastiveLearning

    settings: dict[str, Any] = {} if epochs is None else {"epochs": epochs, "held_out": 0}
    model = ContrastiveLearning(**settings, language=columns[0].runs.analyzer.language)
    model.learn(columns)
    return FittedEncoder(model.encoder_, model.n_epochs_)


def _load_static(choice: str) -> TextEncoder:
    from qkvsearch.text.pretrained.static import StaticEncoder

    return StaticEncoder.from_package()


def _load_transformer(choice: str) -> TextEncoder:
    from qkvsearch.text.pretrained.fetch import find
    from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

    folder = find(choice) if choice in CHOICES else Path(choice)
    if folder is None:
        raise QkvError(f"{choice} is not installed: run `qkvsearch model fetch {choice}`")
    return TransformerEncoder.from_folder(folder)


@dataclass(frozen=True)
class DenseHead:
    """A dense head, whose encoder is either learned or loaded.

    learn(columns, epochs): learn from columns of texts; None for epochs determines the best
    number. load(choice): load what is installed, or raise `QkvError`. is_weighted: whether token
    weights are computed from the catalog. second_pass: the weight of late interaction between
    tokens, in standard deviations, as a share of the head's weight, by
    `benchmarks/defaults/token_head.py`; 0 for none.
    """

    learn: Callable[[Sequence[AnalyzedTexts], int | None], FittedEncoder] | None = None
    load: Callable[[str], Any] | None = None
    is_weighted: bool = False
    second_pass: float = 0.0


DENSE_HEADS: Mapping[str, DenseHead] = {
    "lsa": DenseHead(learn=_learn_lsa),
    "contrastive": DenseHead(learn=_learn_contrastive),
    "static": DenseHead(load=_load_static, is_weighted=True, second_pass=0.3),
    "minilm": DenseHead(load=_load_transformer, second_pass=1 / 3),
    "e5": DenseHead(load=_load_transformer, second_pass=1 / 3),
    "transformer": DenseHead(load=_load_transformer, second_pass=1 / 3),
}
LEARNED = tuple(name for name, head in DENSE_HEADS.items() if head.learn is not None)
SECOND_PASS = {name: head.second_pass for name, head in DENSE_HEADS.items() if head.second_pass}

# The heads of each choice with their weights: lexical first, then dense heads (see `dense_heads`),
# the one of the same name last.
# Chosen on TED's dev queries and on queries made of catalogs.
CHOICES: Mapping[str, Mapping[str, float]] = {
    "corpus": {"lexical": 0.35, "lsa": 0.1, "contrastive": 0.55},
    "static": {"lexical": 0.15, "lsa": 0.05, "contrastive": 0.3, "static": 0.5},
    "minilm": {"lexical": 0.08, "lsa": 0.02, "contrastive": 0.15, "static": 0.15, "minilm": 0.6},
    "e5": {"lexical": 0.3, "e5": 0.7},
}


def prior_weights(choice: str) -> dict[str, float]:
    """Return the heads of an encoder choice, a name or a model's folder, with their weights.

    The head of a folder is called "transformer". Without the package that contains the static
    table, the static head is left out. Raises `QkvError` for an unknown choice.
    """
    if choice in CHOICES:
        weights = dict(CHOICES[choice])
    elif Path(choice).is_dir():
        weights = dict(CHOICES["minilm"])
        weights["transformer"] = weights.pop("minilm")
    else:
        close = suggest(choice, ["auto", *CHOICES])
        names = ", ".join(["auto", *CHOICES])
        raise QkvError(f"no encoder {choice!r}{close} (there is {names}, or a model's folder)")
    from qkvsearch.text.pretrained.static import find_package

    if choice != "static" and "static" in weights and find_package() is None:
        del weights["static"]
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def dense_heads(weights: Iterable[str]) -> list[str]:
    """Return the dense heads among those that have weights: all but the first, which is lexical.

    >>> dense_heads(CHOICES["corpus"])
    ['lsa', 'contrastive']
    """
    return list(weights)[1:]


def fitted_encoder(
    head: str,
    fields: Columns,
    choice: str = "corpus",
    pretrained: TextEncoder | None = None,
    language: str = ENGLISH,
) -> TextEncoder:
    """Return the encoder of a dense head: learned from columns of texts, or the pretrained one,
    loaded unless `pretrained` is given, with weights from these texts where it has any.
    """
    if head in LEARNED:
        return learned_encoder(head, fields, language).encoder
    encoder: Any = pretrained or pretrained_encoder(head, choice)
    if not DENSE_HEADS[head].is_weighted:
        return encoder
    # With frequencies of single columns, TED's dev queries give MRR@10 .4385 instead of .4401.
    whole = ["\n".join(columns) for columns in zip(*fields, strict=True)]
    return encoder.weighted(np.sqrt(encoder.idf(whole)))


def learned_encoder(
    head: str, fields: Columns, language: str = ENGLISH, epochs: int | None = None
) -> FittedEncoder:
    """Learn a head's encoder. epochs: of training; None determines the best number."""
    learn = DENSE_HEADS[head].learn
    assert learn is not None
    from qkvsearch.text.analyzed import AnalyzedTexts

    columns = AnalyzedTexts.of_columns(fields, Analyzer(language))
    return learn(columns, epochs)


def restored_encoder(
    head: str, choice: str, arrays: Mapping[str, np.ndarray], analyzer: Analyzer
) -> TextEncoder:
    """Restore the encoder of a dense head from its stored `learned_arrays`; load the rest of a
    pretrained encoder from where it is installed. analyzer: the build's. Raises `QkvError`.
    """
    if head in LEARNED:
        from qkvsearch.text.token_encoder import TokenEncoder

        terms = Vocabulary(arrays["terms"])
        return TokenEncoder(terms, arrays["vectors"], arrays["weights"], analyzer)
    encoder = pretrained_encoder(head, choice)
    return encoder.weighted(arrays["weights"]) if DENSE_HEADS[head].is_weighted else encoder


def pretrained_encoder(head: str, choice: str) -> Any:
    """Load a head's encoder: the static table, or the transformer `choice`. Raises `QkvError`."""
    load = DENSE_HEADS[head].load
    assert load is not None
    return load(choice)


def pretrained(name: str) -> TextEncoder:
    """Load a model by name, the static table, or the transformer in a folder. Raises `QkvError` for
    another.
    """
    names = [*SPEEDS, "static"]
    if name not in names and not Path(name).is_dir():
        near = suggest(name, names)
        raise QkvError(f"no encoder {name!r}{near} ({', '.join(names)}, or a model's folder)")
    return pretrained_encoder(name if name in names else "transformer", name)


# --- the encoder that a build takes by default: the best one that is installed and fast ---

AUTO = "auto"
# Libraries that read the files of both pretrained encoders.
LIBRARIES = ("safetensors", "tokenizers")
# The longest time, in seconds, that a build encodes unless a slower encoder is requested.
MAX_SECONDS = 60
# Special tokens that are added to each text.
SPECIAL_TOKENS = 2


class Speed(NamedTuple):
    """How fast a transformer encodes on two cores, by `benchmarks/defaults/encoder_speed.py`. Times
    are estimated, not measured, so that the same catalog gets the same encoder on a busy day.
    """

    # By runtime.
    tokens_per_second: Mapping[str, float]
    # The most tokens that it reads of a text.
    max_tokens: int
    bytes_per_token: float = 3.6


SPEEDS = {
    "minilm": Speed({"numpy": 7000, "onnxruntime": 10_000}, 256),
    "e5": Speed({"numpy": 3500, "onnxruntime": 5000}, 512),
}
GET_STATIC = install("encoders")


class Choice(NamedTuple):
    """An encoder's name, the reason for choosing it, and what would change the choice."""

    encoder: str
    why: str


def choose(columns: Sequence[Sequence[str]], language: str = ENGLISH) -> Choice:
    """Choose an encoder for text columns in a language, or "none" for other and mixed ones.

    It is the transformer for the language, if it is installed and encodes the columns in about a
    minute: minilm for English, and e5 for all others. Otherwise it is static if that is installed,
    which knows English alone, otherwise corpus. Texts and installation alone decide.

    >>> choose([["Red kettle", "Blue kettle"]]).encoder in ("minilm", "e5", "static", "corpus")
    True
    """
    available = installed()
    is_english = language == ENGLISH
    # What reads all languages reads English too.
    fitting = ["minilm", "e5"] if is_english else ["e5"]
    best = next((name for name in fitting if name in available), fitting[0])
    seconds = encoding_seconds(columns, best)
    if best in available and seconds <= MAX_SECONDS:
        return Choice(best, f"it is installed and encodes this in {duration(seconds)}")

    has_static = "static" in available
    fallback = "static" if has_static else "corpus"
    if best in available:
        slow = f"{best} would encode for {duration(seconds)}; --encoder {best} takes it anyway"
        return Choice(
            fallback, slow if has_static else f"{slow}; {GET_STATIC} gets static, which is quicker"
        )
    get = f"`qkvsearch model fetch {best}`"
    if not has_static:
        return Choice(fallback, f"no other is installed; {GET_STATIC} gets static, then {get}")
    if seconds > MAX_SECONDS:
        return Choice(
            fallback, f"{best} is not installed, and would encode for {duration(seconds)}"
        )
    if is_english:
        return Choice(fallback, f"{best} is not installed; {get} gets it")
    return Choice(
        fallback, f"it knows English alone; {get} finds by meaning in this catalog's languages too"
    )


def installed() -> tuple[str, ...]:
    """Return the pretrained encoders that are installed, with the libraries that read them."""
    from qkvsearch.text.pretrained.fetch import find

    if any(find_spec(library) is None for library in LIBRARIES):
        return ()
    return tuple(name for name in ("static", *SPEEDS) if find(name) is not None)


def encoding_seconds(columns: Iterable[Sequence[str]], name: str = "minilm") -> float:
    """Estimate how long a transformer encodes text columns: each text, and the whole item for the
    second pass of a search. Bytes count, since a character of a non-Latin script is a token or
    more.

    >>> encoding_seconds([["Why river banks collapse"] * 20_000]) <= 50
    True
    """
    from qkvsearch.text.pretrained.onnx_layers import runtime

    speed = SPEEDS[name]
    tokens = 0.0
    for texts in zip(*columns, strict=True):
        sizes = [len(text.encode("utf-8", "replace")) / speed.bytes_per_token for text in texts]
        for size in [*sizes, sum(sizes)]:
            tokens += min(size + SPECIAL_TOKENS, speed.max_tokens)
    return tokens / speed.tokens_per_second[runtime()]


def duration(seconds: float) -> str:
    """Format a duration for people.

    >>> duration(0.2), duration(45.4), duration(400), duration(9000)
    ('about 1 s', 'about 45 s', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
