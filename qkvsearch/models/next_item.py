"""The next item of a user, by self-attention over the order of interactions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.validation import (
    check_positive,
    check_whole,
    is_finite,
    model_generator,
    require,
)
from qkvsearch.attention.layers import Embedding
from qkvsearch.errors import DataError, need
from qkvsearch.imports import leaving_no_trace
from qkvsearch.models.base import latest_of_each
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.models.next_item_training import TrainingSettings, train
from qkvsearch.models.next_item_windows import Sequences
from qkvsearch.tables.ids import row_numbers
from qkvsearch.tables.interactions import Interactions

with leaving_no_trace("sklearn.base", "sklearn.utils.validation"):
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

# The best epoch is chosen by the last items of a tenth of the users, at most 1,000.
HELD_OUT_SHARE = 0.1
MAX_HELD_OUT = 1000


@dataclass(eq=False, repr=False)
class NextItem(BaseEstimator):
    """A model of the item that a user chooses next, given all items before it in order.

    The history attends to itself under the look-ahead mask. Its last state is the query, and the
    item embeddings that are its input are also the keys. Kang and McAuley 2018, "Self-attentive
    sequential recommendation", with four changes: every item is in the softmax, not one for each
    target (Klenitskiy and Vasilev 2023, "Turning dross into gold loss"); layers are normed first
    with a last norm at the end; feed-forward layers are four times as wide as the embeddings; and
    the learning rate falls to 0 as half a cosine.

    Histories are split into windows of n_positions, differently in each epoch, so that every
    interaction except a user's first is a target once in an epoch. Above 20,000 items, 4,096 are
    sampled for each batch, and the denominator is estimated from them. The last items of a tenth
    of the users, at most 1,000, are no targets: they select the best epoch.

    Parameters: n_components, the embedding size d, a multiple of n_heads; n_layers; n_heads;
    n_positions, how many of the latest items count; dropout, from 0 to below 1; learning_rate > 0,
    at its highest; max_iter, epochs; max_minutes > 0, the longest training, or None; the learning
    rate falls in time; batch_size, in windows; random_state; callback(epoch, max_iter),
    called after each. The same seed gives the same bits on one machine, unless max_minutes ended
    the training.

    Fitted: model_, which answers queries without PyTorch; item_embeddings_ (n_items, d),
    float32, zeros for a cold item; item_ids_.

    >>> from importlib.util import find_spec
    >>> if find_spec("torch"):
    ...     users, days = np.divmod(np.arange(40 * 8), 8)
    ...     log = Interactions.from_columns(users, (users + days) % 12, times=days)
    ...     model = NextItem(8, max_iter=60, batch_size=8, random_state=0).fit(log)
    ...     query = model.fold_in([9, 10, 11])
    ...     assert (model.item_embeddings_ @ query).argmax() == 0   # the twelve go round
    """

    n_components: int = 64
    _: KW_ONLY
    n_layers: int = 2
    n_heads: int = 2
    n_positions: int = 100
    dropout: float = 0.2
    learning_rate: float = 2e-3
    max_iter: int = 20
    max_minutes: float | None = 10.0
    batch_size: int = 32
    random_state: Any = None
    callback: Callback | None = None

    def fit(self, X: Interactions, y: None = None) -> Self:
        """Learn from interactions with times, which need only be comparable within a user.

        A user's interactions at the same time are in the order of the catalog. Raises `DataError`
        for a log without times or without a user of two items, and if the weights diverge;
        `QkvError` if PyTorch is not installed.
        """
        self.check(X)
        sequences = Sequences.of(X)
        rng = model_generator(self.random_state)
        # A cold item cannot come next: the rows of the others are numbered anew.
        warm, rows = np.unique(sequences.items, return_inverse=True)
        sequences = replace(sequences, items=rows)
        sizes = (self.n_components, self.n_layers, self.n_heads, self.n_positions)
        start = NextItemModel.create(len(warm), *sizes, rng)
        settings = TrainingSettings(
            dropout=self.dropout,
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_minutes=self.max_minutes,
            batch_size=self.batch_size,
            callback=self.callback,
        )
        trained = train(settings, start, sequences, _held_out(sequences, rng), rng)
        embeddings = np.zeros((len(X.item_ids), self.n_components), np.float32)
        embeddings[warm] = trained.items.weight
        self.model_ = NextItemModel(Embedding(embeddings), trained.positions, trained.encoder)
        self.item_embeddings_ = embeddings
        self.item_ids_ = X.item_ids
        self.n_features_in_ = len(embeddings)
        return self

    def check(self, X: Interactions) -> None:
        """Raise the errors of `fit` that need no training."""
        self._check_parameters()
        if not isinstance(X, Interactions):
            raise DataError(
                f"fit takes Interactions, not {type(X).__name__}: what comes next needs to know "
                "who interacted with what, and when"
            )
        if Sequences.of(X).lengths.max(initial=0) < 2:
            raise DataError("there is nothing to learn from: no user has two items")
        need("torch", "train", "learning what comes next", name="PyTorch")

    def fold_in(self, history: Any) -> np.ndarray:
        """Return the embedding (d,) of a user with these items, given by their ids, oldest first.

        item_embeddings_ @ embedding are the scores of all items; an empty history gives zeros. An
        item that is named several times has its last place, as in the interactions of `fit`.
        """
        check_is_fitted(self)
        rows = row_numbers(history, self.item_ids_, len(self.item_embeddings_), "item")
        distinct, _ = latest_of_each(rows)
        return self.model_.fold_in(distinct)

    def _check_parameters(self) -> None:
        sizes = ("n_components", "n_layers", "n_heads", "n_positions", "max_iter", "batch_size")
        for name in sizes:
            check_whole(name, getattr(self, name))
        divides = self.n_components % self.n_heads == 0
        requirement = f"a multiple of n_heads, {self.n_heads}"
        require(divides, "n_components", self.n_components, requirement)
        is_share = is_finite(self.dropout) and 0 <= self.dropout < 1
        require(is_share, "dropout", self.dropout, "a number from 0 to below 1")
        check_positive("learning_rate", self.learning_rate)
        if self.max_minutes is not None:
            check_positive("max_minutes", self.max_minutes)


def _held_out(sequences: Sequences, rng: np.random.Generator) -> np.ndarray:
    """Draw the users whose last items select the epoch; each has at least two other items."""
    users = np.flatnonzero(sequences.lengths >= 3)
    n = min(int(HELD_OUT_SHARE * len(users)), MAX_HELD_OUT)
    return rng.choice(users, n, replace=False)
