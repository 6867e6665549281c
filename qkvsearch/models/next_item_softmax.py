"""The cross entropy that `NextItem` is trained by: over all items, or over a sample of them.

PyTorch is imported inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# States at a time: their scores of some thousand items stay in a processor's cache.
STATES_AT_ONCE = 128
# How many items a sample has.
N_SAMPLED = 4096


def full_softmax(states: Tensor, keys: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gradients of the mean of −log softmax(states·keysᵀ)[target] by states and keys.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (n, d), (n_items, d). The scores (n,
    n_items) are computed in blocks, and not stored for a second pass.
    """
    import torch

    keys_down = keys.T.contiguous()
    by_states, by_keys = torch.empty_like(states), torch.zeros_like(keys_down)
    buffer = states.new_empty(min(STATES_AT_ONCE, len(states)), len(keys))
    for first in range(0, len(states), STATES_AT_ONCE):
        block = slice(first, first + STATES_AT_ONCE)
        block_states, block_targets = states[block], targets[block, None]
        errors = torch.mm(block_states, keys_down, out=buffer[: len(block_states)])
        torch.softmax(errors, -1, out=errors)
        errors.scatter_add_(1, block_targets, errors.new_full(block_targets.shape, -1))
        torch.mm(errors, keys, out=by_states[block])
        by_keys.addmm_(block_states.T, errors)
    return by_states / len(states), by_keys.T / len(states)


@dataclass(frozen=True)
class Proposal:
    """Samples items with probability proportional to the square root of their count.

    shares: float64 (n_items,), adding up to 1.
    """

    shares: np.ndarray
    rng: np.random.Generator

    @classmethod
    def of(cls, items: np.ndarray, n_items: int, rng: np.random.Generator) -> Self:
        roots = np.sqrt(np.bincount(items, minlength=n_items))
        return cls(roots / roots.sum(), rng)

    def sample(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw items (n,), perhaps repeated, and return them with their expected counts (n,)."""
        items = np.searchsorted(self.shares.cumsum(), self.rng.random(n), side="right")
        items = np.minimum(items, len(self.shares) - 1)
        return items, n * self.shares[items]


def sampled_softmax(
    states: Tensor, keys: Tensor, targets: Tensor, proposal: Proposal, n: int = N_SAMPLED
) -> Tensor:
    """Compute the mean of −log softmax(states·keysᵀ)[target], with a sampled denominator.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (). The log of its expected count is
    subtracted from the score of a sampled item (logQ correction). The target counts once, and
    samples of it do not count. The estimated denominator is right on average.
    Bengio and Senécal 2008; Jean et al. 2015, section 3.
    """
    import torch

    sampled, expected = map(torch.from_numpy, proposal.sample(n))
    scores = states @ keys[sampled].T - expected.log().to(states.dtype)
    scores = scores.masked_fill(sampled == targets[:, None], -torch.inf)
    target_scores = (states * keys[targets]).sum(-1, keepdim=True)
    totals = torch.logsumexp(torch.cat([target_scores, scores], -1), -1, keepdim=True)
    return (totals - target_scores).mean()
