"""A history to a head: scores of all items, by the collaborative model or by the sequence model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from qkvsearch.answers.arguments import TASTES
from qkvsearch.answers.damping import damped, log_popularity
from qkvsearch.answers.histories import Histories
from qkvsearch.answers.next_item import SequenceScorer, in_order
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.history import History
from qkvsearch.errors import WorkspaceError
from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval import DenseKeys, Head
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables

if TYPE_CHECKING:
    from qkvsearch.sequences.model import NextItemModel

HEAD = "collaborative"


@dataclass(frozen=True)
class Recommender:
    """The models that turn a history into a head. Raises `WorkspaceError` where the build was
    given no interactions.
    """

    models: StoredModels
    tables: Tables

    def __post_init__(self) -> None:
        if self.models.implicit is None:
            folder = self.models.snapshot.folder.parent.parent
            raise WorkspaceError(
                f"{folder}: nobody's interactions are here to recommend from; build with "
                "`interactions`"
            )

    @property
    def factors(self) -> ImplicitFactors:
        """Item embeddings, and the solve that turns a history into a user's."""
        assert self.models.implicit is not None
        return self.models.implicit

    @property
    def next_item(self) -> NextItemModel:
        """Raises `WorkspaceError` where the build has no model of what comes next."""
        if self.models.next_item is None:
            raise WorkspaceError(
                "no model of what comes next is here (`model` next-item): build with `next_item`"
            )
        return self.models.next_item

    @cached_property
    def histories(self) -> Histories:
        return Histories(self.models, self.tables)

    def head(self, history: History, model: str = TASTES, damping: float = 0.0) -> Head | None:
        """Scores of all items by one of the two models, damped; None where the history holds
        nothing that the model knows.
        """
        head = self._by_embedding(history) if model == TASTES else self._by_sequence(history)
        if head is None or not damping:
            return head
        return damped(head, log_popularity(self.models.item_counts), damping)

    def _by_embedding(self, history: History) -> Head | None:
        """By an exact solve on the history, as sums over it; None where it holds nothing liked, or
        cold items alone: the embedding would be zero.
        """
        vectors = self.factors.history_vectors(history.positions, history.confidences)
        if not vectors.any():
            return None
        ids, _ = self.tables.names(history.positions)
        keys = DenseKeys(self.factors.item_embeddings)
        return keys.head(HEAD, LabelledVectors(ids, vectors))

    def _by_sequence(self, history: History) -> Head | None:
        """By what comes next after the history, in its order; None where it holds cold items
        alone.
        """
        rows = in_order(history)
        ids, _ = self.tables.names(rows)
        return SequenceScorer(self.next_item, rows, ids).head()
