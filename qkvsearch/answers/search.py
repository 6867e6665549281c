"""A text query to one fused head: the heads of the build, and a user's preferences beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from qkvsearch.answers.codes import QueryCodes
from qkvsearch.data.columns.facts import text_read
from qkvsearch.errors import QkvError, suggest
from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval import Head, Ranking, fuse, fuse_ranks
from qkvsearch.retrieval.fusion import summed
from qkvsearch.retrieval.late_interaction import NAME as TOKENS
from qkvsearch.retrieval.late_interaction import LateInteraction, joined, late_interaction, rerank
from qkvsearch.stored import StoredModels
from qkvsearch.texts.analysis import Token, known_tokens, matching_words
from qkvsearch.texts.encoders import SECOND_PASS
from qkvsearch.texts.text_encoder import EncodedQuery, item_pieces
from qkvsearch.workspace import Tables

# How heads that measure in units of their own become one.
FUSIONS: Mapping[str, Callable[..., Head]] = {"scores": fuse, "ranks": fuse_ranks}
PERSONAL = "collaborative"
# The weight of a user's preferences beside the query's heads, which count 1 together.
# benchmarks/defaults/personal_search.py: tags that people gave to films, first half of the users.
PREFERENCES_WEIGHT = 0.3


def query_tokens(text: str, models: StoredModels) -> list[Token]:
    """What a build's lexical head looks for; of code that no item has, the bare words."""
    return known_tokens(models.analyzer.query_tokens(text), models.lexical_keys.has)


@dataclass(frozen=True)
class Query:
    """A text as the heads of a build read it; the main head's encoder reads it once for all."""

    text: str
    models: StoredModels

    @cached_property
    def tokens(self) -> list[Token]:
        """What the lexical head looks for."""
        return query_tokens(self.text, self.models)

    @cached_property
    def codes(self) -> QueryCodes:
        """What of the text is an id or another code of an item."""
        return QueryCodes.of(self.text, self.models)

    @cached_property
    def reading(self) -> EncodedQuery:
        """What the main head's encoder makes of the text."""
        return self.models.encoder(self.models.main_head).read(self.codes.rest)

    def head(self, name: str, items: TextSearch) -> Head | None:
        """One head's scores of the items; None where it knows no word of the text."""
        if name == "lexical":
            words = self.models.lexical_keys.head(self.tokens)
            known = [head for head in (words, self.codes.head(items.tables)) if head is not None]
            return summed(known) if known else None
        is_main = name == self.models.main_head
        rest = self.codes.rest
        vectors = self.reading.parts if is_main else self.models.encoder(name).encode(rest)
        return self.models.dense_keys(name).head(name, vectors, partial(items.pieces, name))

    def late(self, items: TextSearch) -> LateInteraction | None:
        """The text's words, to attend over those of items; None where there are none."""
        encoder = self.models.encoder(self.models.main_head)

        def labels_of(position: int) -> Sequence[str]:
            return encoder.read(joined(items.texts(position))).tokens.labels

        keys, lexical = self.models.token_keys, self.models.lexical_keys
        return late_interaction(
            self.reading.tokens, keys, lexical, labels_of, analyzer=self.models.analyzer
        )

    def notes(self, main: Head | None, mask: np.ndarray | None) -> list[str]:
        """What a person should know of an answer by the main head: that its best is below the noise
        threshold, and how much of the text was too long to be read.
        """
        found: list[str] = []
        if main is None:
            return found
        nearest = main.scores if mask is None else main.scores[mask]
        keys = self.models.lexical_keys
        level = self.models.snapshot.facts.get("chance")
        is_unknown = not self.codes.tokens and not any(keys.n_with(t.term) for t in self.tokens)
        if level is not None and is_unknown and len(nearest) and nearest.max() <= level:
            found.append(
                "None of these words is in the catalog, and strings of random letters come as "
                "near to some item: the hits may have nothing to do with the query."
            )
        if n := self.reading.n_unread:
            encoder = self.models.encoder(main.name)
            found.append(
                f"The query is longer than {main.name}'s {encoder.limit} tokens: it did not read "
                f"the last {'word' if n == 1 else f'{n:,} words'}."
            )
        return found


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
        preferences: Callable[[], Head | None] | None = None,
        mask: np.ndarray | None = None,
    ) -> Head | None:
        """The wanted heads as one, None where none knows anything of the query.

        `preferences` makes the head of a user, which counts only where another head knows a word.
        Of what `mask` leaves (bool, n_items) the best are compared word by word in a second pass,
        where the build has the words and scores are summed. The head's `notes` are of the main
        head. Raises `QkvError` for a head or a fusion that is not there, or not to be had together.
        """
        if fusion not in FUSIONS:
            there = " and ".join(FUSIONS)
            raise QkvError(
                f"no fusion {fusion!r}{suggest(fusion, list(FUSIONS))} (there are {there})"
            )
        names = self.wanted(heads, personal=preferences is not None)
        if fusion == "ranks" and TOKENS in names:
            if heads is not None:
                raise QkvError(
                    f"the {TOKENS} head adds to scores, and fusion by ranks has none: leave it "
                    "out, or fuse by scores"
                )
            names.remove(TOKENS)
        asked = Query(query, self.models)
        found = {name: asked.head(name, self) for name in names if name not in (PERSONAL, TOKENS)}
        known = {name: head for name, head in found.items() if head is not None}
        if preferences is not None and PERSONAL in names and (known or not found):
            liked = preferences()
            known |= {} if liked is None else {PERSONAL: liked}
        if not known:
            return None
        weights = self.models.head_weights | {PERSONAL: PREFERENCES_WEIGHT}
        fused = FUSIONS[fusion](list(known.values()), [weights[name] for name in known])
        if TOKENS in names:
            fused = rerank(fused, asked.late(self), SECOND_PASS[self.models.main_head], mask)
        return replace(fused, notes=asked.notes(found.get(self.models.main_head), mask))

    def head(self, name: str, query: str) -> Head | None:
        """One head's scores and their parts; None where it knows no word of the query. Raises
        `QkvError` for a name that no head of the text has.
        """
        names = list(self.models.head_weights)
        if name not in names:
            raise QkvError(f"no head {name!r}{suggest(name, names)} (there are {', '.join(names)})")
        return Query(query, self.models).head(name, self)

    def pieces(self, head: str, position: int) -> LabelledVectors:
        """An item's texts as the sum that its key is in a dense head."""
        return item_pieces(self.models.encoder(head), self.texts(position))

    def texts(self, position: int) -> list[str]:
        """What is searched of an item, column by column."""
        row, columns = self.tables.row(position), self.tables.catalog_columns
        return [text_read(row[name], columns.find(name).type) for name in self.columns]

    def with_matches(self, ranking: Ranking, query: str) -> Ranking:
        """Each hit with `matches`: by column, the words that the lexical head finds."""
        analyzer = self.models.analyzer
        terms = {token.term for token in query_tokens(query, self.models)}
        codes = QueryCodes.of(query, self.models)
        found = []
        for position in map(int, ranking.positions):
            texts = dict(zip(self.columns, self.texts(position), strict=True))
            found.append(
                codes.cells(self.tables, position) | matching_words(terms, texts, analyzer)
            )
        return ranking.annotated(matches=found)

    @property
    def columns(self) -> list[str]:
        """What is searched."""
        return list(self.models.snapshot.facts["text_columns"])

    def wanted(self, heads: Iterable[str] | None, personal: bool) -> list[str]:
        """The heads asked for, by default all: "semantic" is every dense one, a user adds one."""
        text = list(self.models.head_weights)
        has_tokens = self.models.has_tokens and self.models.main_head in SECOND_PASS
        known = [*text, *[TOKENS] * has_tokens, *[PERSONAL] * personal]
        there = f"(there are {', '.join(known)}, and semantic for {', '.join(text[1:])})"
        asked: set[str] = set()
        for name in known if heads is None else heads:
            if name == PERSONAL and not personal:
                raise QkvError(
                    f"the {PERSONAL} head is what a user prefers: name the user (`user`)"
                )
            if name not in known and name != "semantic":
                raise QkvError(f"no head {name!r}{suggest(name, [*known, 'semantic'])} {there}")
            asked.update(text[1:] if name == "semantic" else [name])
        if not asked:
            raise QkvError(f"no heads to score by {there}")
        if asked == {TOKENS}:
            raise QkvError(f"the {TOKENS} head goes through what another found: name one {there}")
        return [name for name in known if name in asked or name == PERSONAL]
