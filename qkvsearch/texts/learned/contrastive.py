"""An encoder trained on the catalog: what two columns say of one item should be near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch.attention.layers.basic import Embedding
from qkvsearch.attention.training import Adam
from qkvsearch.errors import DataError
from qkvsearch.parameters import check_positive, check_whole, is_finite, require
from qkvsearch.texts.languages import ENGLISH
from qkvsearch.texts.learned.pairs import (
    Item,
    Pooling,
    Training,
    halves,
    items_of,
    mean_reciprocal_rank,
    narrowed,
    terms_of,
    translated,
)
from qkvsearch.texts.learned.svd import CooccurrenceEncoder, CorpusEncoder, LearnedEncoder
from qkvsearch.texts.text_encoder import item_keys
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.threads import one_blas_thread

INITS = {"lsa": CorpusEncoder, "ppmi": CooccurrenceEncoder}
# The most and the fewest items that are held out to tell how long to train; fewer say nothing sure.
MOST_HELD_OUT, FEWEST_HELD_OUT = 500, 10
# Epochs without a better one after which the search for the best ends.
PATIENCE = 3

Columns = Sequence[Sequence[str]]


@dataclass(eq=False, repr=False)
class ContrastiveEncoder(LearnedEncoder):
    """Token vectors and weights trained to tell which texts belong to one item.

    Training starts from those of `init`, "ppmi" or "lsa". A batch holds two columns' texts of each
    of its items, a share `dropout` of their words dropped at random; the softmax over the batch's
    cosines / `temperature` should give each text its partner, both ways (InfoNCE; van den Oord et
    al. 2018, section 2.3). An item with one text is cut into two halves. Attention between the
    words before they are added up has been measured, and adds nothing: docs/ablation.md.

    How long to train is measured without a share `held_out` of the items, by how well each of their
    columns finds the item by its other columns. If no epoch, of at most `epochs`, finds them better
    than the start does, or the items are too few to tell, vectors and weights stay those of `init`.
    Where nothing is held out, all `epochs` are trained. Of a larger catalog a random sample of
    `max_items` is trained on, and the words that they have. `language`: as in `Analyzer`.

    Fitted: `encoder_`, a `TokenEncoder`; `embeddings_` (n_items, d) float32, rows of length 1;
    `n_epochs_`, the epochs chosen; `reciprocal_ranks_` (epochs tried + 1,), the held-out items'
    mean, the start's first. One seed gives the same bits, whatever the number of threads.

    >>> titles, tags = ["deep sea", "fast car"] * 60, ["ocean water", "road engine"] * 60
    >>> model = ContrastiveEncoder(n_components=2).fit([titles, tags])
    >>> sea, ocean, road = model.transform(["sea", "ocean", "road"])
    >>> bool(sea @ ocean > 0.9 > sea @ road)
    True
    """

    n_components: int = 128
    init: str = "ppmi"
    temperature: float = 0.2
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 3e-3
    dropout: float = 0.2
    held_out: float = 0.2
    max_items: int = 5000
    random_state: int | None = 0
    language: str = ENGLISH

    def fit(self, fields: Columns | Sequence[str], y: Any = None) -> ContrastiveEncoder:
        """fields: columns of texts, one text an item each; or the texts of a single column.

        Raises `DataError` for columns of different lengths, and for a parameter that cannot work.
        """
        self._check_parameters()
        columns = as_columns(fields)
        # One BLAS thread: the bits must not depend on how many there are.
        with one_blas_thread():
            start = self._start(columns)
            sample = self._sample(columns)
            items = items_of(start, sample)
            self._choose_epochs(sample, items, start)
            used = terms_of(items)
            training = self._training(*narrowed(start, items, used))
            for _ in range(self.n_epochs_):
                training.epoch()
            self.encoder_ = _encoder(start, training.model, used if self.n_epochs_ else None)
            self.embeddings_ = item_keys(self.encoder_.encode_many, columns)
        return self

    def _sample(self, columns: Columns) -> Columns:
        """The items to train on, in their order."""
        n_items = len(columns[0])
        if n_items <= self.max_items:
            return columns
        rng = np.random.default_rng(self.random_state)
        chosen = np.sort(rng.choice(n_items, self.max_items, replace=False))
        return [[column[i] for i in chosen] for column in columns]

    def _choose_epochs(self, columns: Columns, items: list[Item], whole: TokenEncoder) -> None:
        """Train without some items for as long as that helps to find them."""
        self.n_epochs_, self.reciprocal_ranks_ = 0, np.zeros(0)
        if not self.held_out:
            self.n_epochs_ = self.epochs
            return
        rng = np.random.default_rng(self.random_state)
        order = rng.permutation(len(items))
        n_held_out = min(int(self.held_out * len(items)), MOST_HELD_OUT)
        if not self.epochs or n_held_out < FEWEST_HELD_OUT:
            return
        rest = order[n_held_out:]
        # Learned without them: a word that one item alone has would give it away.
        start = self._start([[column[i] for i in rest] for column in columns])
        rows_of = start.vocabulary.rows(term.decode() for term in whole.vocabulary.terms)
        asked = translated([items[i] for i in order[:n_held_out]], rows_of)
        if len(columns) == 1:
            asked = [halves(text, rng) for (text,) in asked]
        training = self._training(start, translated([items[i] for i in rest], rows_of))
        ranks = [mean_reciprocal_rank(training.model, asked)]
        while len(ranks) <= min(self.epochs, int(np.argmax(ranks)) + PATIENCE):
            training.epoch()
            ranks.append(mean_reciprocal_rank(training.model, asked))
        self.n_epochs_, self.reciprocal_ranks_ = int(np.argmax(ranks)), np.array(ranks)

    def _start(self, columns: Columns) -> TokenEncoder:
        texts = ["\n".join(fields) for fields in zip(*columns, strict=True)]
        estimator = INITS[self.init](
            self.n_components, random_state=self.random_state, language=self.language
        )
        return estimator.fit(texts).encoder_

    def _training(self, start: TokenEncoder, items: list[Item]) -> Training:
        return Training(
            Pooling(Embedding(_even(start.vectors)), np.log(start.weights)),
            # The others have no two words to tell apart.
            [item for item in items if sum(len(rows) for rows, _ in item) > 1],
            self.temperature,
            self.dropout,
            self.batch_size,
            Adam(self.learning_rate),
            np.random.default_rng(self.random_state),
        )

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components)
        check_whole("batch_size", self.batch_size)
        check_whole("max_items", self.max_items)
        check_positive("temperature", self.temperature)
        check_positive("learning_rate", self.learning_rate)
        if self.epochs != 0:
            check_whole("epochs", self.epochs)
        require(self.init in INITS, "init", self.init, f"one of {', '.join(INITS)}")
        for name in ("dropout", "held_out"):
            share = getattr(self, name)
            valid = is_finite(share) and 0 <= share < 1
            require(valid, name, share, "a number from 0 to below 1")


def as_columns(fields: Columns | Sequence[str]) -> list[list[str]]:
    """Columns of one length. Raises `DataError`."""
    columns = [[each] if isinstance(each, str) else list(each) for each in fields]
    if not columns or isinstance(fields[0], str):
        return [[text for column in columns for text in column]]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise DataError(f"every column must have one text an item, got lengths {lengths}")
    return columns


def _even(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 in the mean: one learning rate then suits every start."""
    size = float(np.sqrt(np.square(vectors).sum() / max(len(vectors), 1))) or 1.0
    return vectors / np.float32(size)


def _encoder(start: TokenEncoder, model: Pooling, trained: np.ndarray | None) -> TokenEncoder:
    """The start with what was learned of its terms in the rows `trained`; None for nothing."""
    if trained is None:
        return start
    vectors, weights = _even(start.vectors), start.weights.copy()
    vectors[trained], weights[trained] = model.tokens.weight, np.exp(model.log_weights)
    return replace(start, vectors=vectors, weights=weights)
