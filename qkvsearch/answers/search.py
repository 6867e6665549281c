"""A text query to one fused head: the heads of the build, and a user's taste beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from qkvsearch.answers.matches import Matches, matching_words
from qkvsearch.embeddings.encoders import item_pieces
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.errors import QkvError, suggest
from qkvsearch.retrieval import Head, fuse, fuse_ranks
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables

# How heads that measure in units of their own become one.
FUSIONS: Mapping[str, Callable[..., Head]] = {"scores": fuse, "ranks": fuse_ranks}
TASTE = "collaborative"
# What a user's taste counts beside the query's heads, which count 1 together.
# benchmarks/personal_search.py: tags that people gave to films, the first half of the users.
TASTE_WEIGHT = 0.3


@dataclass(frozen=True)
class TextSearch:
    """The heads that a build can answer a text by."""

    models: StoredModels
    tables: Tables

    def fused(
        self,
        query: str,
        heads: Iterable[str] | None = None,
        fusion: str = "scores",
        taste: Callable[[], Head | None] | None = None,
    ) -> Head | None:
        """The wanted heads as one, None where none knows anything of the query.

        `taste` makes the head of a user's taste, which says nothing without a word that is known.
        Raises `QkvError` for a head or a fusion that is not there.
        """
        if fusion not in FUSIONS:
            there = " and ".join(FUSIONS)
            raise QkvError(f"no fusion {fusion!r}{suggest(fusion, list(FUSIONS))} (there are {there})")
        names = self.wanted(heads, personal=taste is not None)
        found = {name: self.head(name, query) for name in names if name != TASTE}
        known = {name: head for name, head in found.items() if head is not None}
        if taste is not None and TASTE in names and (known or not found):
            liked = taste()
            known |= {} if liked is None else {TASTE: liked}
        if not known:
            return None
        weights = self.models.head_weights | {TASTE: TASTE_WEIGHT}
        return FUSIONS[fusion](list(known.values()), [weights[name] for name in known])

    def head(self, name: str, query: str) -> Head | None:
        """One head's scores and their parts; None where it knows no word of the query."""
        if name == "lexical":
            return self.models.lexical_keys.head(Analyzer().query_tokens(query))
        vectors = self.models.encoder(name).encode(query)
        return self.models.dense_keys(name).head(name, vectors, partial(self.pieces, name))

    def pieces(self, head: str, position: int) -> LabelledVectors:
        """An item's texts as the sum that its key is in a dense head."""
        fields = [self.tables.text(position, [column]) for column in self.columns]
        return item_pieces(self.models.encoder(head), fields)

    def matches(self, query: str, position: int) -> Matches:
        """The words of each searched column that the lexical head finds the query's in."""
        terms = {token.term for token in Analyzer().query_tokens(query)}
        texts = {column: self.tables.text(position, [column]) for column in self.columns}
        return matching_words(terms, texts)

    @property
    def columns(self) -> list[str]:
        """What is searched."""
        return list(self.models.snapshot.facts["text_columns"])

    def wanted(self, heads: Iterable[str] | None, personal: bool) -> list[str]:
        """The heads asked for, by default all; "semantic" is all that read the text as vectors."""
        text = list(self.models.head_weights)
        known = [*text, TASTE] if personal else text
        there = f"(there are {', '.join(known)}, and semantic for {' and '.join(text[1:])})"
        asked: set[str] = set()
        for name in known if heads is None else heads:
            if name == TASTE and not personal:
                raise QkvError(f"the {TASTE} head is a user's taste: name the user")
            if name not in known and name != "semantic":
                raise QkvError(f"no head {name!r}{suggest(name, [*known, 'semantic'])} {there}")
            asked.update(text[1:] if name == "semantic" else [name])
        if not asked:
            raise QkvError(f"no heads to score by {there}")
        return [name for name in known if name in asked]
