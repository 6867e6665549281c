"""The training of `NextItem`: the loop in PyTorch, which is imported inside functions."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import available_cores
from qkvsearch.attention.layers import load, state
from qkvsearch.errors import DataError
from qkvsearch.imports import leaving_no_trace
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.models.next_item_softmax import Proposal, full_softmax, sampled_softmax
from qkvsearch.models.next_item_windows import Batch, Sequences, Windows

if TYPE_CHECKING:
    from torch import Tensor

# PyTorch's compiler, and the variable that names its folder.
COMPILER = "torch._dynamo", "torch._inductor"
COMPILER_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
# Up to this many items, all are in the softmax; otherwise a sample of them.
FULL_SOFTMAX_ITEMS = 20_000
# The share of training in which the learning rate rises; then it falls, as half a cosine.
WARM_UP = 0.05
BETAS = (0.9, 0.98)
# Multiplications of a batch's scores below which threads wait longer than they work.
FEW_PRODUCTS = 2**24
# In this share of max_minutes the clock does not count. Training that will end in time is then
# always ahead of the clock, and no bit depends on it.
UNTIMED = 0.1
HISTORIES_AT_ONCE = 128


@dataclass(frozen=True)
class TrainingSettings:
    """How `NextItem` is trained; its parameters of the same names."""

    dropout: float
    learning_rate: float
    max_iter: int
    max_minutes: float | None
    batch_size: int
    callback: Callback | None


def train(
    settings: TrainingSettings,
    model: NextItemModel,
    sequences: Sequences,
    held_out: np.ndarray,
    rng: np.random.Generator,
) -> NextItemModel:
    """Train a model, and return it with the weights of the best epoch.

    That is the epoch that predicts best the last items of the users `held_out` (n,), which are
    never targets; without such users, the last epoch. The same rng gives the same bits on one
    machine. Raises `DataError` for weights that are not finite.
    """
    import torch

    with _cores(model, settings.batch_size), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        training = _Training(settings, model, sequences, held_out, rng)
        return load(model, training.run())


@contextmanager
def _cores(model: NextItemModel, batch_size: int) -> Iterator[None]:
    """Let PyTorch use all cores of this process, or one for small batches; restore its setting."""
    import torch

    before = torch.get_num_threads()
    products = batch_size * len(model.positions.weight) * model.items.weight.size
    torch.set_num_threads(1 if products < FEW_PRODUCTS else available_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Training:
    """The weights, the optimizer and the clock of a training."""

    def __init__(
        self,
        settings: TrainingSettings,
        model: NextItemModel,
        sequences: Sequences,
        held_out: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        import torch

        # In PyTorch's own memory: the alignment of NumPy's differs between runs, and so would bits.
        self.weights: dict[str, Tensor] = {
            name: torch.tensor(array, requires_grad=True) for name, array in state(model).items()
        }
        self.keys = self.weights["items.weight"]
        self.n_heads = model.n_heads
        self.settings = settings
        size = len(model.positions.weight)
        self.windows = Windows(sequences, size, settings.batch_size, held_out, rng)
        self.proposal: Proposal | None = None
        if len(self.keys) > FULL_SOFTMAX_ITEMS:
            self.proposal = Proposal.of(sequences.items, len(self.keys), rng)
        self.histories = sequences.histories(held_out, n_left_out=1)
        self.targets = [history[-1] for history in sequences.histories(held_out)]
        # The first optimizer imports PyTorch's compiler, which is not used here and makes a folder
        # for itself, unless a folder that exists is named.
        folder = os.environ.get(COMPILER_FOLDER) or tempfile.gettempdir()
        with leaving_no_trace(*COMPILER, variables={COMPILER_FOLDER: folder}):
            self.optimizer = torch.optim.AdamW(
                self.weights.values(), lr=settings.learning_rate, betas=BETAS
            )
        self.began = time.monotonic()
        self.n_steps = 0

    def run(self) -> dict[str, np.ndarray]:
        """Run epochs until `max_iter` or `max_minutes`, and return the best weights. Raises
        `DataError` if they are not finite.
        """
        best: dict[str, np.ndarray] = {}
        best_quality = -1.0
        for epoch in range(1, self.settings.max_iter + 1):
            for batch in self.windows:
                self._step(batch)
                if self._progress() >= 1:
                    break
            quality = self._quality() if self.histories else float(epoch)
            if quality >= best_quality:  # among equal ones, the later
                best_quality = quality
                best = {name: w.copy() for name, w in self._arrays().items()}
            if self.settings.callback is not None:
                self.settings.callback(epoch, self.settings.max_iter)
            # No step leads back from a NaN.
            if self._progress() >= 1 or not _are_finite(self._arrays()):
                break
        if not _are_finite(best):
            rate = self.settings.learning_rate
            raise DataError(f"learning what comes next diverged: lower learning_rate ({rate:g})")
        return best

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the current weights, in PyTorch's memory."""
        return {name: weight.detach().numpy() for name, weight in self.weights.items()}

    def _progress(self) -> float:
        """Return the share of the training that is done, by steps or by the clock."""
        done = self.n_steps / (self.settings.max_iter * len(self.windows))
        if self.settings.max_minutes is None:
            return done
        elapsed = (time.monotonic() - self.began) / (60 * self.settings.max_minutes)
        return max(done, (elapsed - UNTIMED) / (1 - UNTIMED))

    def _learning_rate(self) -> float:
        progress = min(self._progress(), 1.0)
        warm = min(progress / WARM_UP, 1.0)
        cooling = max(progress - WARM_UP, 0.0) / (1 - WARM_UP)
        return self.settings.learning_rate * warm * (1 + math.cos(math.pi * cooling)) / 2

    def _step(self, batch: Batch) -> None:
        """Compute the gradients of a batch's mean cross entropy, and take a step."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self.optimizer.zero_grad()
        items, targets, counts = map(torch.from_numpy, batch)
        outputs = states(self.weights, items, self.n_heads, self.settings.dropout)[counts]
        block_targets = targets[counts]
        if self.proposal is None:
            gradients = full_softmax(outputs.detach(), self.keys.detach(), block_targets)
            torch.autograd.backward([outputs, self.keys], list(gradients))
        else:
            sampled_softmax(outputs, self.keys, block_targets, self.proposal).backward()
        self.optimizer.step()
        self.n_steps += 1

    def _quality(self) -> float:
        """Return the mean of 1 / log₂(rank + 1) of held-out items, among those new to the user."""
        total = 0.0
        for first in range(0, len(self.histories), HISTORIES_AT_ONCE):
            block = slice(first, first + HISTORIES_AT_ONCE)
            histories, targets = self.histories[block], self.targets[block]
            scores = self._scores(histories)
            for row, seen, target in zip(scores, histories, targets, strict=True):
                if not np.isfinite(row).all():
                    continue
                row[seen] = -np.inf
                # Ties count against it: equal scores for all predict nothing.
                rank = np.count_nonzero(row >= row[target])
                total += 1 / math.log2(rank + 1)
        return total / len(self.histories)

    def _scores(self, histories: list[np.ndarray]) -> np.ndarray:
        """Return the scores of all items after each history, (n, n_items)."""
        import torch

        size = self.windows.size
        recent = [history[-size:] for history in histories]
        items = np.zeros((len(recent), max(map(len, recent))), np.int64)
        for row, history in zip(items, recent, strict=True):
            row[: len(history)] = history
        with torch.no_grad():
            outputs = states(self.weights, torch.from_numpy(items), self.n_heads)
            last = outputs[torch.arange(len(recent)), [len(history) - 1 for history in recent]]
            scores: np.ndarray = (last @ self.keys.T).numpy()
        return scores


def states(
    weights: Mapping[str, Tensor], items: Tensor, n_heads: int, dropout: float = 0.0
) -> Tensor:
    """Compute `NextItemModel.states` of a batch of windows: items (B, L) -> (B, L, d).

    Training needs a second implementation, since PyTorch differentiates only its own operations,
    and dropout is between them. A test compares it with the model that answers.

    weights: `layers.state` of a model. Nothing attends to entries after a window's end. dropout:
    of the embeddings and of what each sublayer adds, as in Vaswani et al. 2017, section 5.4.
    """
    from torch.nn import functional as F

    is_training, d = dropout > 0, weights["items.weight"].shape[1]

    def drop(x: Tensor) -> Tensor:
        return F.dropout(x, dropout) if is_training else x

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (d,), weights[f"{name}.weight"], weights[f"{name}.bias"])

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attend(x: Tensor, name: str) -> Tensor:
        projected = (linear(x, f"{name}.{part}") for part in ("query", "key", "value"))
        query, key, value = (y.unflatten(-1, (n_heads, -1)).transpose(1, 2) for y in projected)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return linear(mixed.transpose(1, 2).flatten(-2), f"{name}.output")

    def feed_forward(x: Tensor, name: str) -> Tensor:
        return linear(F.relu(linear(x, f"{name}.hidden")), f"{name}.output")

    x = F.embedding(items, weights["items.weight"]) * math.sqrt(d)
    x = drop(x + weights["positions.weight"][: items.shape[1]])
    n_layers = sum(name.endswith("attention.query.weight") for name in weights)
    for number in range(n_layers):
        name = f"encoder.layers.{number}"
        x = x + drop(attend(norm(x, f"{name}.attention_norm"), f"{name}.attention"))
        x = x + drop(feed_forward(norm(x, f"{name}.feed_forward_norm"), f"{name}.feed_forward"))
    return norm(x, "encoder.norm")


def _are_finite(arrays: Mapping[str, np.ndarray]) -> bool:
    return all(np.isfinite(array).all() for array in arrays.values())
