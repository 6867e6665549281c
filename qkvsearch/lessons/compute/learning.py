"""Lesson on learning: a layer that learns, how matrices start, and what a real model attends to."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch._utils.python_syntax import parsing_python
from qkvsearch.attention import attention
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.attention.layers.basic import gaussian, kaiming_normal, xavier_normal
from qkvsearch.attention.training import Adam, mean_squared_error
from qkvsearch.errors import QkvError
from qkvsearch.lessons.compute.context_search import recorded_layers
from qkvsearch.lessons.compute.sentences import by_words, words_of
from qkvsearch.lessons.drawings import AttendedText
from qkvsearch.lessons.drawings.attention_lines import LEVELS
from qkvsearch.lessons.parts import Given
from qkvsearch.text.encoded_text import EncodedText, Focus, cosine, focus, is_word
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.languages import stop_words
from qkvsearch.text.pretrained.fetch import find

FOLDER = Path(__file__).parent
# The task: sequences of tokens with this many numbers.
SEQUENCES = 32
TOKENS = 4
WIDTH = 2
# How it is learned.
RATE = 0.1
ROUNDS = 150
# The deviation of the numbers that matrices start from, whatever their size.
DEVIATION = 0.02

# --- how matrices start ---


def small(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Draw with the same deviation for every size."""
    return gaussian(shape, rng, DEVIATION)


# Ways to draw a matrix (fan_out, fan_in), and the variance that each aims at.
STARTS: dict[str, Callable[[tuple[int, int], np.random.Generator], np.ndarray]] = {
    "Gaussian": small,
    "Xavier": xavier_normal,
    "Kaiming": kaiming_normal,
}


def variances_wanted(fan_out: int, fan_in: int) -> list[float]:
    """Return the variance that each way to start aims at."""
    return [DEVIATION**2, 2 / (fan_in + fan_out), 2 / fan_in]


def variance_drawn(way: str, shape: tuple[int, int]) -> float:
    """Return the variance of the numbers in 4,000 matrices."""
    rng = np.random.default_rng(0)
    return float(np.var([STARTS[way](shape, rng) for _ in range(4000)]))


def after_layers(way: str, n_layers: int, width: int, n_draws: int) -> np.ndarray:
    """Return the variance that is left after layers with ReLU, for each draw of their matrices.

    100 inputs of variance 1 go through them.
    """
    rng = np.random.default_rng(0)
    draw = STARTS[way]
    variances = []
    for _ in range(n_draws):
        x = rng.normal(size=(100, width))
        for _ in range(n_layers):
            matrix = draw((width, width), rng)
            x = np.maximum(0, x @ matrix.T)
        variances.append(x.var())
    return np.array(variances)


# --- a layer that learns ---


def task(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (SEQUENCES, TOKENS, WIDTH + TOKENS) and targets (SEQUENCES, TOKENS, WIDTH).

    An input is a token's numbers and its position. The target is the numbers of the token before;
    the first token's is the last.
    """
    content = np.random.default_rng(seed).normal(size=(SEQUENCES, TOKENS, WIDTH))
    positions = np.broadcast_to(np.eye(TOKENS), (SEQUENCES, TOKENS, TOKENS))
    return np.concatenate([content, positions], axis=2), np.roll(content, 1, axis=1)


def train(
    x: np.ndarray, target: np.ndarray, is_plain: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], list[float]]:
    """Return the three matrices as drawn and as learned, and the loss of each round.

    is_plain: subtract RATE times the gradient, without Adam.
    """
    rng = np.random.default_rng(1)
    optimizer = Adam(RATE)
    widths = {"query": TOKENS, "key": TOKENS, "value": WIDTH}
    matrices = {name: gaussian((x.shape[-1], d), rng, 0.1) for name, d in widths.items()}
    drawn = {name: matrix.copy() for name, matrix in matrices.items()}
    losses = []
    inputs = x.reshape(-1, x.shape[-1])
    for _ in range(ROUNDS):
        outputs, pull = attention_vjp(
            x @ matrices["query"], x @ matrices["key"], x @ matrices["value"]
        )
        loss, gradient = mean_squared_error(outputs, target)
        losses.append(loss)
        # The loss by the queries, keys and values, then by the matrices that made them.
        by_projection = pull(gradient)
        by_matrix = {
            name: inputs.T @ getattr(by_projection, name).reshape(-1, d)
            for name, d in widths.items()
        }
        if is_plain:
            matrices = {name: matrices[name] - RATE * by_matrix[name] for name in matrices}
        else:
            optimizer.step(matrices, by_matrix)
    return drawn, matrices, losses


def two_sequences(w: dict[str, np.ndarray]) -> dict[str, float]:
    """Return how much weights and outputs of two sequences differ under the same matrices."""
    x, _ = task()
    query, key, value = (x[:2] @ w[name] for name in ("query", "key", "value"))
    outputs, weights = attention(query, key, value, return_weights=True)
    return {
        "weights": float(np.abs(weights[0] - weights[1]).max()),
        "outputs": float(np.abs(outputs[0] - outputs[1]).max()),
    }


# --- a word of a sentence, and who reads it ---


@dataclass(frozen=True)
class Twin:
    """A sentence with two endings: "it" is the first noun with one, the second with the other."""

    # Up to the last word.
    sentence: str
    endings: tuple[str, str]
    nouns: tuple[str, str]

    @property
    def sentences(self) -> tuple[str, str]:
        first, second = (f"{self.sentence} {ending}" for ending in self.endings)
        return first, second


# Written for this test, none but the first looked at before it.
TWINS = tuple(
    Twin(sentence, tuple(endings), tuple(nouns))
    for sentence, endings, nouns in json.loads((FOLDER / "twins.json").read_text("utf-8"))
)
ANIMAL = TWINS[0]


@dataclass(frozen=True, eq=False)
class AttendQuestion:
    """What a word attends to in a sentence."""

    # Who answers: "transformer", "recorded", "static", or "nobody".
    kind: str
    # Why a model could not be read.
    problem: str = ""
    encoder: str = "minilm"
    sentence: str = ANIMAL.sentences[0]
    word: str = "it"
    # The word whose weight is looked at.
    target: str = "animal"
    # The encoder, None where it is not here; and what it gave, None where that was recorded.
    model: Any = None
    focus: Focus | None = None


def ask(given: Given) -> AttendQuestion:
    """Return the question about the reader's sentence, or about the lesson's own.

    What MiniLM gives for the lesson's own was recorded, and is not measured again where MiniLM is
    installed: that takes ten seconds. Raises `QkvError` where the encoder that was asked for cannot
    be read.
    """
    name, model, problem = encoder_for(given)
    is_own = given.sentence is not None
    if not is_own and given.encoder is None:
        return AttendQuestion("recorded", problem, model=model)
    if model is None:
        return AttendQuestion("nobody", problem)
    sentence = ANIMAL.sentences[0] if given.sentence is None else given.sentence
    text = read(model, sentence)
    word = word_to_ask(text)
    focused = focus(text, word, None if is_own else "animal")
    return AttendQuestion(
        kind="transformer" if text.has_layers else "static",
        problem=problem,
        encoder=name,
        sentence=sentence,
        word=word,
        target=focused.key,
        model=model,
        focus=focused,
    )


def read(encoder: Any, sentence: str) -> EncodedText:
    """Return the sentence as the encoder reads it, in the words that the lesson sees in it."""
    return by_words(encoder.attend(sentence), words_of(sentence))


def encoder_for(given: Given) -> tuple[str, Any, str]:
    """Return a name, its encoder or None, and why an installed one cannot be read.

    The lesson's own sentence is MiniLM's, which was recorded. For a sentence of the reader's there
    are e5 too, first of all in another script, and the static table.
    """
    if given.encoder is not None:
        return given.encoder, pretrained(given.encoder), ""
    if given.sentence is None:
        choices = ["minilm"]
    elif given.sentence.isascii():
        choices = ["minilm", "e5", "static"]
    else:
        choices = ["e5", "minilm", "static"]
    problem = ""
    for choice in choices:
        if find(choice) is None:
            continue
        try:
            return choice, pretrained(choice), problem
        except QkvError as error:
            problem = str(error)
    return "", None, problem


def word_to_ask(text: EncodedText) -> str:
    """Return *it* where it occurs, else the last word that is no stop word."""
    words = [word for word in text.words if is_word(word)]
    if not words:
        raise QkvError("`sentence` has no words to attend to one another: give it two or more")
    for word in words:
        if fold(word) == "it":
            return word
    no_stop_words = [word for word in words if fold(word) not in stop_words()]
    return no_stop_words[-1] if no_stop_words else words[-1]


# --- what a transformer's weights show ---


@dataclass(frozen=True, eq=False)
class HeadEvidence:
    """The weights from one word to another in all heads, and what they are compared with."""

    # The words, and the weights of all heads.
    text: AttendedText
    # Positions in the text.
    word: int
    target: int
    # Of the word with every word, before any layer and after the last (2, n).
    cosines: np.ndarray
    # Those before any layer and after each of them (n_layers + 1, n).
    depths: np.ndarray
    # What the function `removed` returns.
    removed: list[dict[str, Any]]
    # Where the sentence has two endings: the text with the second, the cosine of the two words in
    # it, and what the function `turns` returns.
    other: AttendedText | None = None
    other_cosine: float = 0.0
    turns: np.ndarray | None = None

    @property
    def words(self) -> list[int]:
        """The positions of words, without the marks at both ends."""
        return [i for i, name in enumerate(self.text.words) if is_word(name)]

    @property
    def heads(self) -> np.ndarray:
        """The weight from the word to the target (n_layers, n_heads)."""
        return np.asarray(self.text.weights[:, :, self.word, self.target])

    @property
    def others(self) -> np.ndarray:
        """The mean weight from the other words to the target (n_layers, n_heads)."""
        others = [i for i in self.words if i != self.word]
        return np.asarray(self.text.weights[:, :, others, self.target].mean(axis=2))

    @property
    def most(self) -> np.ndarray:
        """How many words attend to the target most (n_layers, n_heads)."""
        best = self.text.weights[:, :, self.words].argmax(axis=3)
        return np.asarray((best == self.target).sum(axis=2))

    @property
    def strongest(self) -> tuple[int, int]:
        """The head with the largest weight from the word to the target: layer, number."""
        return _largest(self.heads)

    @property
    def singled(self) -> tuple[int, int]:
        """The head where the word attends to the target most, compared with the other words."""
        return _largest(self.heads - self.others)

    @property
    def swapped(self) -> np.ndarray | None:
        """With the other ending, the weights to both nouns (2, n_layers, n_heads)."""
        if self.other is None:
            return None
        words = list(self.other.words)
        nouns = [words.index(noun) for noun in ANIMAL.nouns]
        return np.moveaxis(self.other.weights[:, :, words.index("it")][..., nouns], -1, 0)


def _largest(array: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(array.argmax(), array.shape)
    return int(layer), int(head)


def evidence(question: AttendQuestion) -> HeadEvidence | None:
    """Return what the transformer's weights show, measured or recorded; None without one."""
    if question.kind == "recorded":
        return recorded()
    if question.kind != "transformer":
        return None
    has_twin = question.sentence == ANIMAL.sentences[0] and are_read(question.model)
    return measured(
        question.model, question.sentence, question.word, question.target, has_twin=has_twin
    )


def measured(
    encoder: Any, sentence: str, word: str, target: str, has_twin: bool = False
) -> HeadEvidence:
    """Measure a text's weights; has_twin: whether the sentence is the first of ANIMAL."""
    text = read(encoder, sentence)
    i = text.position(word)
    j = text.position(target)
    vectors = text.word_vectors()
    depths = cosine(vectors[:, [i]], vectors)
    attended = AttendedText(list(text.words), text.word_weights())
    result = HeadEvidence(attended, i, j, depths[[0, -1]], depths, removed=[])
    heads = dict.fromkeys([result.strongest, result.singled])  # once, if they are the same
    result = replace(result, removed=removed(encoder, text, i, j, heads))
    if not has_twin:
        return result
    other = encoder.attend(ANIMAL.sentences[1])
    last = other.word_vectors()[-1]
    return replace(
        result,
        other=AttendedText(list(other.words), other.word_weights()),
        other_cosine=float(cosine(last[other.position(word)], last[other.position(target)])),
        turns=turns(encoder, result.singled),
    )


def are_read(encoder: Any) -> bool:
    """Whether the encoder reads all sentences to their ends: some read only a few tokens."""
    texts = (sentence for twin in TWINS for sentence in twin.sentences)
    return not any(encoder.attend(text).left_out for text in texts)


def turns(encoder: Any, head: tuple[int, int]) -> np.ndarray:
    """Return the weights of *it* in a head (n_twins, 2, 2): by ending, to each noun."""
    found = np.zeros((len(TWINS), 2, 2))
    for n, twin in enumerate(TWINS):
        for ending, sentence in enumerate(twin.sentences):
            text = encoder.attend(sentence)
            weights = text.word_weights()[head][text.position("it")]
            found[n, ending] = [weights[text.position(noun)] for noun in twin.nouns]
    return found


def right_turns(weights: np.ndarray) -> np.ndarray:
    """Whether the last word moved the weights (n, 2, 2) towards the noun that is meant.

    >>> right_turns(np.array([[[0.6, 0.1], [0.3, 0.2]], [[0.3, 0.1], [0.5, 0.1]]]))
    array([ True, False])
    """
    lead = weights[:, :, 0] - weights[:, :, 1]
    return lead[:, 0] > lead[:, 1]


def without(
    encoder: Any, text: EncodedText, word: int, key: int, head: tuple[int, int] | None = None
) -> np.ndarray:
    """Return the words' last vectors (m, d) where a word may not attend to a key.

    That is in one head, (layer, number), or in all. The weights that are left add up to 1 again.
    """
    # Words may consist of several tokens.
    visible = ~np.outer(text.owners == word, text.owners == key)
    x = text.hidden[0]
    n_heads = text.weights.shape[1]
    for n, layer in enumerate(encoder.encoder.layers):
        mask = np.ones((n_heads, *visible.shape), dtype=bool)
        if head is None:
            mask[:] = visible
        elif head[0] == n:
            mask[head[1]] = visible
        x = layer(x, mask=mask)
    # A word's vector is the mean of its tokens' vectors.
    starts = np.searchsorted(text.owners, np.arange(len(text.words)))
    return np.asarray(np.add.reduceat(x, starts, axis=0) / np.bincount(text.owners)[:, None])


def removed(
    encoder: Any, text: EncodedText, word: int, target: int, heads: Iterable[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return what changes without a weight: to the target in these heads, to each token in all.

    weight: what is taken away, summed over heads. moved: 1 − the cosine of the word's last vector
    before and after. near: its cosine with the target's.
    """
    weights = text.word_weights()[:, :, word]
    before = text.word_vectors()[-1]
    cuts: list[tuple[int, tuple[int, int] | None]] = [(target, head) for head in heads]
    cuts += [(key, None) for key in range(len(text.words)) if key != word]
    found = []
    for key, head in cuts:
        after = without(encoder, text, word, key, head)
        of_key = weights[:, :, key]
        change = {
            "key": text.words[key],
            "head": None if head is None else list(head),
            "weight": float(of_key.sum() if head is None else of_key[head]),
            "moved": float(1 - cosine(before[word], after[word])),
            "near": float(cosine(after[word], after[target])),
        }
        found.append(change)
    return found


# --- what was recorded of MiniLM ---

RECORDED = FOLDER / "minilm.json"


@cache
def recorded() -> HeadEvidence:
    """Return what MiniLM gave for the lesson's own sentence."""
    text, other = recorded_texts()[:2]
    word = list(text.words).index("it")
    target = list(text.words).index("animal")
    fields = json.loads(RECORDED.read_text(encoding="utf-8"))
    fields["cosines"] = np.array(fields["cosines"])
    fields["depths"] = recorded_layers()["cosines"]
    fields["turns"] = np.array(fields["turns"])
    return HeadEvidence(text, word, target, other=other, **fields)


@cache
def recorded_texts() -> tuple[AttendedText, ...]:
    """Return twelve sentences with the weights of all heads of MiniLM.

    `docs/minilm_heads.py` wrote the file and describes it.
    """
    with parsing_python, np.load(FOLDER / "minilm_heads.npz") as file:
        words, lengths, codes, shape = (file[n] for n in ("words", "lengths", "codes", "shape"))
    # The words and the codes of all sentences are one after another.
    n_heads = int(shape.prod())
    texts = []
    words_begin = codes_begin = 0
    for n in map(int, lengths):
        words_end = words_begin + n
        codes_end = codes_begin + n_heads * n * n
        own_codes = codes[codes_begin:codes_end].reshape(*shape, n, n)
        own_words = words[words_begin:words_end].tolist()
        texts.append(AttendedText(own_words, own_codes / LEVELS, own_codes))
        words_begin = words_end
        codes_begin = codes_end
    return tuple(texts)
