"""A text query to one fused head: the heads of the build, and a user's preferences beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.data.columns.facts import text_read
from qkvsearch.errors import QkvError, suggest
from qkvsearch.index import StoredModels
from qkvsearch.query.where import Where
from qkvsearch.retrieval import Components, Ranking, Scores, fuse, fuse_ranks
from qkvsearch.retrieval.fusion import plus, summed
from qkvsearch.retrieval.late_interaction import (
    DEPTH,
    LateInteraction,
    late_interaction,
    rerank,
    token_labels,
)
from qkvsearch.retrieval.late_interaction import NAME as TOKENS
from qkvsearch.retrieval.remote_keys import Allowed, RemoteWords, Unscored, scored
from qkvsearch.search.answerable import NEAREST, NOTHING, answerable, matches
from qkvsearch.search.expansion import Lexicon
from qkvsearch.search.query import Query, QueryReader
from qkvsearch.search.query_notes import query_notes
from qkvsearch.search.query_vectors import QueryVectors
from qkvsearch.search.snippets import cut, passages, snippet, weighed_terms
from qkvsearch.storage import StoredCatalog
from qkvsearch.text.analysis import matching_words
from qkvsearch.text.encoders import SECOND_PASS
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.text_encoder import item_pieces

# How heads that measure in units of their own become one.
FUSIONS: Mapping[str, Callable[..., Scores]] = {"scores": fuse, "ranks": fuse_ranks}
LEXICAL, PERSONAL = "lexical", "collaborative"
# What all items are alike by, where a query says only what must hold.
CONDITIONS = "conditions"
# While one types, what a title begins with is most likely meant, whatever its words mean.
BEGINNING, BEGUN = "beginning", 5.0
# The weight of a user's preferences beside the query's heads, which count 1 together.
# benchmarks/defaults/personal_search.py: tags that people gave to films, first half of the users.
PREFERENCES_WEIGHT = 0.3


class TextSearch:
    """The heads by which a build answers texts. reader: reads the texts as queries."""

    def __init__(self, models: StoredModels, catalog: StoredCatalog) -> None:
        self.models, self.catalog = models, catalog
        self.reader = QueryReader(models, catalog, Lexicon(models))

    def vectors(self, query: Query) -> QueryVectors:
        """Return the embeddings of a query."""
        return QueryVectors(query, self.models, self.reader.lexicon)

    def fused(
        self,
        query: str | Query,
        heads: Iterable[str] | None = None,
        fusion: str = "scores",
        preferences: Callable[[], Scores | None] | None = None,
        mask: np.ndarray | None = None,
        anyway: bool = False,
        where: Where | None = None,
        k: int = 0,
        is_typing: bool = False,
    ) -> Scores | None:
        """The wanted heads as one, None where none knows anything of the query.

        `preferences` makes the head of a user, which counts only where another head knows a word.
        Of what `mask` leaves (bool, n_items) the best are compared word by word in a second pass,
        where the build has the words and scores are summed; where, k: the condition that is in the
        mask and how many are wanted, which keys that are elsewhere are asked with. The head's
        `notes` are of the main head. A query that the catalog does not answer has a head that
        answers no item and says so, unless `anyway`. Raises `QkvError` for a head or a fusion that
        is not there, or not to be had together.
        """
        names = self._fusible(heads, fusion, personal=preferences is not None)
        asked = self.reader.read(query) if isinstance(query, str) else query
        vectors = self.vectors(asked)
        by_text = [name for name in names if name not in (PERSONAL, TOKENS)]
        unscored = {name: self._head(name, asked, vectors) for name in by_text}
        is_known = any(head is not None for head in unscored.values())
        if preferences is not None and PERSONAL in names and (is_known or not by_text):
            unscored[PERSONAL] = preferences()
        begun = self._begun(asked, is_typing)
        for every in scored(unscored, Allowed(mask, where, k), begun):
            known = {name: head for name, head in every.items() if head is not None}
            if not known:
                return None if asked.text.strip() else self._by_conditions(asked)
            weights = {
                name: weight if name == LEXICAL else weight * asked.certainty
                for name, weight in self.models.head_weights.items()
            } | {PERSONAL: PREFERENCES_WEIGHT}
            fused = FUSIONS[fusion](list(known.values()), [weights[name] for name in known])
            if fused.has_best(max(k, DEPTH), mask):
                break
        found = {name: every[name] for name in by_text}
        is_answered = self._is_answered(asked, found)
        if not (is_answered or anyway):
            nothing = np.zeros(len(fused.scores), dtype=bool)
            return replace(fused, answers=nothing, notes=[NOTHING])
        if begun is not None:
            fused = plus(fused, BEGINNING, fused.taken(BEGUN * begun.astype(np.float32)))
        if TOKENS in names:
            fused = rerank(fused, self._late(vectors), SECOND_PASS[self.models.main_head], mask)
        notes = self._notes(vectors, found.get(self.models.main_head))
        return replace(fused, notes=notes if is_answered else [NEAREST, *notes])

    def _fusible(self, heads: Iterable[str] | None, fusion: str, personal: bool) -> list[str]:
        """The wanted heads; ranks alone leave out the one that adds to scores."""
        if fusion not in FUSIONS:
            there = " and ".join(FUSIONS)
            raise QkvError(
                f"no fusion {fusion!r}{suggest(fusion, list(FUSIONS))} (there are {there})"
            )
        names = self.wanted(heads, personal)
        if fusion == "ranks" and TOKENS in names:
            if heads is not None:
                raise QkvError(
                    f"the {TOKENS} head adds to scores, and fusion by ranks has none: leave it "
                    "out, or fuse by scores"
                )
            names.remove(TOKENS)
        return names

    def _is_answered(self, asked: Query, found: Mapping[str, Scores | None]) -> bool:
        if asked.stop_words_mask is not None:
            return bool(asked.stop_words_mask.any())
        return answerable(self.models, asked.tokens, found, bool(asked.codes.tokens)).answers

    def head(self, name: str, query: str) -> Scores | None:
        """One head's scores and their parts; None where it knows no word of the query. Raises
        `QkvError` for a name that no head of the text has.
        """
        names = list(self.models.head_weights)
        if name not in names:
            raise QkvError(f"no head {name!r}{suggest(name, names)} (there are {', '.join(names)})")
        asked = self.reader.read(query)
        return next(scored({name: self._head(name, asked, self.vectors(asked))}))[name]

    def _head(self, name: str, asked: Query, vectors: QueryVectors) -> Scores | Unscored | None:
        """One head of the text, whose scores may be still to be asked for; None where it knows no
        word of it.
        """
        if name == LEXICAL:
            words, codes = (
                self.models.lexical_keys.head(asked.terms),
                asked.codes.head(self.catalog),
            )
            known = [head for head in (words, codes) if head is not None]
            if not known or self.models.key_store is None:
                return summed(known) if known else None
            also = np.flatnonzero(codes.scores) if codes is not None else np.zeros(0, np.int64)
            query = self.models.lexical_keys.query_weights(asked.terms)
            return RemoteWords(summed(known), self.models.key_store, query, also)
        return self.models.dense_keys(name).head(
            name, vectors.of_head(name), partial(self.pieces, name)
        )

    def _late(self, vectors: QueryVectors) -> LateInteraction | None:
        """The text's words, to attend over those of items; None where there are none."""
        encoder = self.models.encoder(self.models.main_head)

        def labels_of(position: int) -> Sequence[str]:
            return token_labels(encoder, self.texts(position))

        keys, lexical = self.models.token_keys, self.models.lexical_keys
        tokens, named = vectors.encoded.tokens, vectors.token_labels()
        boosts = np.array([boost for _, boost in named])
        found = late_interaction(
            tokens, keys, lexical, labels_of, boosts=boosts, analyzer=self.models.analyzer
        )
        labels = [label for label, _ in named]
        return found and replace(found, query=replace(found.query, labels=labels))

    def _begun(self, asked: Query, is_typing: bool) -> np.ndarray | None:
        """bool (n_items,): the items whose first column begins as typed; None where that does not
        count.
        """
        index = self.models.words
        typed = [token.text for token in self.models.analyzer.tokens(asked.typed)]
        return index.starting(typed) if is_typing and typed else None

    def _by_conditions(self, asked: Query) -> Scores | None:
        """All items alike, where a query says only what must hold."""
        if asked.conditions.mask is None:
            return None
        scores, parts = np.zeros(self.models.n_items, np.float32), Components.of([])
        return Scores(CONDITIONS, scores, lambda position: parts)

    def _notes(self, vectors: QueryVectors, main: Scores | None) -> list[str]:
        """Say how much of the text was too long for the main head to read."""
        if main is None or not (n := vectors.n_unread):
            return []
        encoder = self.models.encoder(main.name)
        return [
            f"The query is longer than {main.name}'s {encoder.limit} tokens: it did not read "
            f"the last {'word' if n == 1 else f'{n:,} words'}."
        ]

    def pieces(self, head: str, position: int) -> LabelledVectors:
        """An item's texts as the sum that its key is in a dense head."""
        weights = self.models.column_weights(head)
        return item_pieces(self.models.encoder(head), self.texts(position), weights)

    def texts(self, position: int) -> list[str]:
        """What is searched of an item, column by column."""
        row, columns = self.catalog.row(position), self.catalog.catalog_columns
        return [text_read(row[name], columns.find(name).type) for name in self.columns]

    def matching(
        self, asked: Query, heads: Iterable[str] | None, mask: np.ndarray, ranking: Ranking
    ) -> np.ndarray:
        """bool (n_items,): what of `mask` matches the query: all that its conditions leave, where
        it has no text, and otherwise as `answerable.matches` says; of hits that only come near
        those of `ranking`.
        """
        if not ranking.n_candidates:
            return np.zeros_like(mask)
        if not asked.text.strip():
            return mask
        names = [name for name in self.wanted(heads, False) if name in self.models.head_weights]
        vectors = self.vectors(asked)
        found = {name: self._head(name, asked, vectors) for name in names}
        is_match = mask & matches(self.models, asked.tokens, found)
        if not is_match.any():
            is_match[ranking.positions] = True
        return is_match

    def notes(self, query: Query) -> list[str]:
        """Return the notes on a query for the user."""
        return query_notes(query, self.reader)

    def with_snippets(self, ranking: Ranking, asked: Query) -> Ranking:
        """Each hit with the passage of its longest text that has the most of the query's words;
        where it has none, the one whose embedding is nearest. None without such a text.
        """
        terms = weighed_terms(
            list({way.term for word in asked.terms for way in word.ways}), self.models.lexical_keys
        )
        return ranking.annotated(
            snippet=[self._snippet(int(place), terms, asked) for place in ranking.positions]
        )

    def _snippet(self, position: int, terms: Mapping[str, float], asked: Query) -> str | None:
        pause()
        texts = zip(self.columns, self.texts(position), strict=True)
        text = max((text for name, text in texts if name != "title"), key=len, default="")
        if not text.strip():
            return None
        if (found := snippet(text, terms, self.models.analyzer)) is not None:
            return found
        spans = passages(text)
        if len(spans) > 1 and asked.text.strip():
            encoder = self.models.encoder(self.models.main_head)
            near = encoder.encode_many([text[slice(*span)] for span in spans])
            query = self.vectors(asked).of_head(self.models.main_head)
            best = int((near @ query.total).argmax()) if len(query) else 0
            return cut(text, *spans[best])
        return cut(text, 0, 0)

    def with_matches(self, ranking: Ranking, asked: Query) -> Ranking:
        """Each hit with `matches`: by column, the words that the lexical head finds."""
        terms = {way.term for word in asked.terms for way in word.ways}
        analyzer = self.models.analyzer
        found = []
        for position in map(int, ranking.positions):
            pause()
            texts = dict(zip(self.columns, self.texts(position), strict=True))
            cells = asked.codes.cells(self.catalog, position)
            found.append(cells | matching_words(terms, texts, analyzer))
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
