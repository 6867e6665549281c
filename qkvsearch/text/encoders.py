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
from qkvsearch.text.languages import ENGLISH, english_name
from qkvsearch.text.text_encoder import TextEncoder
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from qkvsearch.text.analyzed import AnalyzedTexts

TextColumns = Sequence[Sequence[str]]
# The code of the language that static and minilm know.
EN = "en"


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
# All that read English together, by `benchmarks/defaults/search_defaults.py` on TED's dev queries.
# What is learned from the catalog adds nothing beside them.
ALL_ENGLISH = {"lexical": 0.1, "static": 0.04, "e5": 0.29, "minilm": 0.57}
# Requests of an encoder that depend on what is installed.
AUTO, BEST = "auto", "best"
NAMES = (AUTO, BEST, *CHOICES)


def prior_weights(choice: str, languages: Sequence[str] = (EN,)) -> dict[str, float]:
    """Return the heads of an encoder choice, a name or a model's folder, with their weights.

    The head of a folder is called "transformer". Without the package that contains the static
    table, the static head is left out. languages: the ISO codes of the texts' languages, of which
    "best" depends. Raises `QkvError` for an unknown choice.
    """
    if choice == BEST:
        weights = _best_weights(languages)
    elif choice in CHOICES:
        weights = dict(CHOICES[choice])
    elif Path(choice).is_dir():
        weights = dict(CHOICES["minilm"])
        weights["transformer"] = weights.pop("minilm")
    else:
        close = suggest(choice, list(NAMES))
        names = ", ".join(NAMES)
        raise QkvError(f"no encoder {choice!r}{close} (there is {names}, or a model's folder)")
    from qkvsearch.text.pretrained.static import find_package

    if choice != "static" and "static" in weights and find_package() is None:
        del weights["static"]
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _best_weights(languages: Sequence[str]) -> dict[str, float]:
    """Return the weights of all installed encoders that read these languages.

    With other languages than English that is e5 alone: static and minilm have learned nothing of
    them. Where it is missing, they are better than nothing.
    """
    available = installed()
    if are_english(languages) and "e5" in available:
        known = {*available, "lexical"}
        return {name: weight for name, weight in ALL_ENGLISH.items() if name in known}
    fitting = [*transformers_for(languages), "static"]
    return dict(CHOICES[next((name for name in fitting if name in available), "corpus")])


def are_english(languages: Sequence[str]) -> bool:
    """Return whether texts in these languages, by ISO codes, are in English and in no other.

    >>> are_english(["en"]), are_english(["en", "zh"])
    (True, False)
    """
    return list(languages) == [EN]


def dense_heads(weights: Iterable[str]) -> list[str]:
    """Return the dense heads among those that have weights: all but the first, which is lexical.

    >>> dense_heads(CHOICES["corpus"])
    ['lsa', 'contrastive']
    """
    return list(weights)[1:]


def fitted_encoder(
    head: str,
    fields: TextColumns,
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
    encoder = encoder.having_cut(fields)
    # With frequencies of single columns, TED's dev queries give MRR@10 .4385 instead of .4401.
    return encoder.weighted(np.sqrt(encoder.idf(fields)))


def learned_encoder(
    head: str, fields: TextColumns, language: str = ENGLISH, epochs: int | None = None
) -> FittedEncoder:
    """Learn a head's encoder, from a part of a large catalog. epochs: of training; None determines
    the best number.
    """
    learn = DENSE_HEADS[head].learn
    assert learn is not None
    from qkvsearch.text.analyzed import AnalyzedTexts
    from qkvsearch.text.learned.sample import texts_to_learn_from

    columns = AnalyzedTexts.of_columns(fields, Analyzer(language))
    return learn(texts_to_learn_from(columns), epochs)


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
    # A head has the name of its encoder, except that of a folder.
    return load(choice if head == "transformer" else head)


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

# Libraries that read the files of both pretrained encoders.
LIBRARIES = ("safetensors", "tokenizers")
# The longest time, in seconds, that a build encodes unless a slower encoder is requested.
MAX_SECONDS = 60
# Languages that a line names before "others".
MAX_NAMED = 4


class Speed(NamedTuple):
    """How fast a transformer encodes on two cores, by `benchmarks/defaults/encoder_speed.py`. Times
    are estimated, not measured, so that the same catalog gets the same encoder on a busy day.
    """

    # By runtime.
    tokens_per_second: Mapping[str, float]
    # The most tokens that it reads of a text, and those that it puts around one.
    max_tokens: int
    added_tokens: int


SPEEDS = {
    "minilm": Speed({"numpy": 7000, "onnxruntime": 10_000}, max_tokens=256, added_tokens=2),
    "e5": Speed({"numpy": 3000, "onnxruntime": 5000}, max_tokens=512, added_tokens=4),
}
# Of all scripts: a Chinese character has three bytes, and is about a token.
BYTES_PER_TOKEN = 3.6
# All passages of a text have about so many times its tokens: each begins with the last sentence of
# the one before.
OVERLAP = 1.2
GET_STATIC = install("encoders")


class Choice(NamedTuple):
    """An encoder's name, the reason for choosing it, and the transformer that would be chosen if it
    were installed, "" for none.
    """

    encoder: str
    why: str
    better: str = ""


def choose(
    columns: Sequence[Sequence[str]],
    languages: Sequence[str] = (EN,),
    in_passages: bool = False,
) -> Choice:
    """Choose an encoder for text columns in these languages, by ISO codes, the most frequent first.

    in_passages: whether long texts are encoded in passages. The encoder is the first of
    `transformers_for` these languages that is installed and encodes the columns in about a minute.
    Otherwise it is static if that is installed, which knows English alone, otherwise corpus. Texts
    and installation alone decide.

    >>> choose([["Red kettle", "Blue kettle"]]).encoder in ("minilm", "e5", "static", "corpus")
    True
    """
    available = installed()
    seconds = {
        name: encoding_seconds(columns, name, in_passages) for name in transformers_for(languages)
    }
    quick = [name for name, estimated in seconds.items() if estimated <= MAX_SECONDS]
    taken = next((name for name in quick if name in available), None)
    texts = f"texts in {names_of(languages)}"
    if taken is not None:
        why = f"for {texts}; it encodes them in {duration(seconds[taken])}"
        reads_all = taken == "e5" or are_english(languages)
        if reads_all or quick[0] in available:
            return Choice(taken, why)
        return Choice(taken, f"{why}; {quick[0]} is not installed", better=quick[0])

    fallback = "static" if "static" in available else "corpus"
    if quick:
        return Choice(fallback, f"{quick[0]} for {texts} is not installed", better=quick[0])
    best = next((name for name in seconds if name in available), next(iter(seconds)))
    is_missing = " is not installed, and" if best not in available else ""
    why = f"{best}{is_missing} would encode for {duration(seconds[best])}"
    if best in available:
        why += f"; --encoder {best} takes it anyway"
    if fallback == "corpus" and are_english(languages):
        why += f"; {GET_STATIC} gets static, which is quicker"
    return Choice(fallback, why)


def transformers_for(languages: Sequence[str]) -> list[str]:
    """Return the transformers that read texts in these languages, by ISO codes, the best first.

    For English alone that is minilm, and for all others e5. Each stands in for the other where it
    is not installed: e5 reads English too, and minilm most texts of a catalog that is first of all
    in English.

    >>> transformers_for(["en"]), transformers_for(["en", "zh"]), transformers_for(["zh", "en"])
    (['minilm', 'e5'], ['e5', 'minilm'], ['e5'])
    """
    if are_english(languages):
        return ["minilm", "e5"]
    return ["e5", "minilm"] if languages[0] == EN else ["e5"]


def requested(
    encoder: str,
    columns: Sequence[Sequence[str]],
    languages: Sequence[str],
    in_passages: bool = False,
) -> Choice:
    """Return the encoder that is asked for, a name, "auto", "best", or a model's folder, for text
    columns in these languages, and why it is taken.

    in_passages: whether long texts are encoded in passages.
    """
    if encoder == AUTO:
        chosen = choose(columns, languages, in_passages)
        return chosen._replace(why=f"automatic: {chosen.why}")
    if encoder == BEST:
        heads = dense_heads(prior_weights(BEST, languages))
        taken = _listed([name for name in heads if name not in LEARNED]) or "none"
        return Choice(BEST, f"all that is installed for texts in {names_of(languages)}: {taken}")
    # Who asks for an encoder of English alone may not know that there is one for the texts.
    is_misread = encoder in ("static", "minilm") and not are_english(languages)
    better = choose(columns, languages, in_passages).better if is_misread else ""
    return Choice(encoder, "your choice", better)


def advice(better: str, languages: Sequence[str]) -> str:
    """Return the one line that says how a catalog gets a transformer for its languages.

    better: of `Choice`; an empty line for none.
    """
    if not better:
        return ""
    texts = f"Texts are in {names_of(languages)}"
    if better in installed():
        return f"{texts}: {better} is installed now, and finds by meaning after another build."
    get = f"qkvsearch model fetch {better}"
    if not _can_read():
        libraries = install("encoders" if are_english(languages) else "languages")
        get = f"{libraries} && {get}"
    return f"{texts}: `{get}` finds by meaning after another build."


def names_of(languages: Sequence[str]) -> str:
    """Return the names of languages by their ISO codes, the first few of many.

    >>> names_of(["en", "zh"]), names_of(["de"])
    ('English and Chinese', 'German')
    """
    names = [english_name(code) for code in languages]
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], "others"]
    return _listed(names)


def _listed(names: Sequence[str]) -> str:
    """Return names as in a sentence: "a, b and c"."""
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _can_read() -> bool:
    """Return whether there are the libraries that read pretrained encoders."""
    return all(find_spec(library) is not None for library in LIBRARIES)


def installed() -> tuple[str, ...]:
    """Return the pretrained encoders that are installed, with the libraries that read them."""
    from qkvsearch.text.pretrained.fetch import find

    if not _can_read():
        return ()
    return tuple(name for name in ("static", *SPEEDS) if find(name) is not None)


def encoding_seconds(
    columns: Iterable[Sequence[str]], name: str = "minilm", in_passages: bool = False
) -> float:
    """Estimate how long a transformer encodes text columns, by the number of their tokens. Bytes
    count, since a character of a non-Latin script is a token or more.

    in_passages: whether long texts are encoded in passages. Otherwise they are cut at the
    transformer's limit.

    >>> encoding_seconds([["Why river banks collapse"] * 20_000]) <= 50
    True
    >>> talk = "One walks along the river for ten minutes. " * 600
    >>> encoding_seconds([[talk]], in_passages=True) > 20 * encoding_seconds([[talk]])
    True
    """
    from qkvsearch.text.passages import LONG, n_words
    from qkvsearch.text.pretrained.onnx_layers import runtime

    speed = SPEEDS[name]
    tokens = 0.0
    for texts in columns:
        for text in texts:
            size = len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN
            # Counting words takes time, and only what is cut may have so many.
            if in_passages and size > speed.max_tokens and n_words(text) > LONG:
                tokens += OVERLAP * size
            else:
                tokens += min(size + speed.added_tokens, speed.max_tokens)
    return tokens / speed.tokens_per_second[runtime()]


def duration(seconds: float) -> str:
    """Format a duration for people.

    >>> duration(0.2), duration(45.4), duration(400), duration(9000)
    ('about 1 s', 'about 45 s', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
