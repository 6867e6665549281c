"""A text query to one fused head: the heads of the build, and a user's preferences beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.errors import QkvError, suggest
from qkvsearch.heads.bm25 import inverse_document_frequency
from qkvsearch.heads.late_interaction import (
    DEPTH,
    LateInteraction,
    late_interaction,
    rerank,
    token_labels,
)
from qkvsearch.heads.late_interaction import NAME as TOKENS
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.word_pairs import word_pairs
from qkvsearch.rank.answerable import NEAREST, NOTHING, answerable, grades, judging_head, matches
from qkvsearch.rank.expansion import Lexicon
from qkvsearch.rank.query import Label, Query, QueryReader
from qkvsearch.rank.query_notes import query_notes
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.snippets import cut, passages, snippet
from qkvsearch.scores.approximate import (
    ALL_ITEMS,
    ApproximateQuery,
    Filter,
    fuse_candidates,
    score_candidates,
)
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores, fuse, plus, summed
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_types import text_read
from qkvsearch.text.analysis import matching_words
from qkvsearch.text.encoders import LEARNED, SECOND_PASS
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors
from qkvsearch.text.text_encoder import EncodedQuery, item_pieces

LEXICAL, PERSONAL = "lexical", "collaborative"
# The head of a query that consists of conditions alone: all items have the same score.
CONDITIONS = "conditions"
POPULAR = "popular"
BY_POPULARITY = "An empty query: the most popular items come first."
BY_ID = "An empty query: items are in the order of their ids."
# While the user types, an item whose title begins so is most likely meant, whatever its meaning.
BEGINNING, PREFIX_BONUS = "beginning", 5.0
# The weight of a user's preferences beside the query's heads, whose weights add up to 1.
# benchmarks/defaults/personal_search.py: tags that people gave to films, first half of the users.
PREFERENCES_WEIGHT = 0.3


@dataclass(frozen=True)
class QueryVectors:
    """The embeddings of one query. An encoder is loaded when its head is asked for."""

    query: Query
    models: StoredModels
    lexicon: Lexicon

    def of_head(self, head: str) -> LabelledVectors:
        """Return labelled vectors that add up to the query of a dense head."""
        if head == self.models.main_head and self._needs_tokens:
            vectors = self.encoded.parts
        else:
            vectors = self.models.encoder(head).encode(self.query.codes.rest)
        if self.query.unfinished:
            vectors = self._completed(vectors, head)
        return self._boosted(vectors) if self.query.labels else vectors

    @cached_property
    def encoded(self) -> EncodedQuery:
        """The text as the main head's encoder reads it, once."""
        return self.models.encoder(self.models.main_head).read(self.query.codes.rest)

    @property
    def n_unread(self) -> int:
        """How many words are beyond the limit of the main head's encoder."""
        return self.encoded.n_unread if self._needs_tokens else 0

    def token_labels(self) -> list[Label]:
        """Return the name in reasons and the weight of each token of the main head."""
        query, labels = self.query, []
        for token in self.encoded.tokens.labels:
            name, boost = query.label(token)
            if query.unfinished and fold(str(token)) == query.unfinished:
                boost *= query.completions[0][1]
            labels.append((name, boost))
        return labels

    @property
    def _needs_tokens(self) -> bool:
        """Whether the tokens of the text are needed, beside the main head's query."""
        has_limit = self.models.encoder(self.models.main_head).limit is not None
        return has_limit or self.models.has_tokens

    def _completed(self, vectors: LabelledVectors, head: str) -> LabelledVectors:
        """Replace the vector of an unfinished word by the mean of its completions."""
        unfinished = self.query.unfinished
        rows = [row for row, word in enumerate(vectors.labels) if fold(str(word)) == unfinished]
        if not rows:
            return vectors
        length = np.linalg.norm(vectors.vectors[rows].sum(axis=0))
        mean = self.lexicon.meaning(self.query.last_prefix, head)
        replaced = vectors.vectors.copy()
        replaced[rows] = 0
        replaced[rows[0]] = mean * (length / max(float(np.linalg.norm(mean)), NEGLIGIBLE))
        return LabelledVectors(vectors.labels, replaced)

    def _boosted(self, vectors: LabelledVectors) -> LabelledVectors:
        """Scale each word by its boost, with the total as long as before."""
        labels = [self.query.label(label) for label in vectors.labels]
        boosts = np.array([boost for _, boost in labels], dtype=vectors.vectors.dtype)
        boosted = vectors.vectors * boosts[:, None]
        length = np.linalg.norm(boosted.sum(axis=0))
        scale = np.linalg.norm(vectors.total) / length if length > NEGLIGIBLE else 1.0
        boosted = boosted * boosted.dtype.type(scale)
        return LabelledVectors([label for label, _ in labels], boosted)


class TextSearch:
    """The heads by which a build answers texts. reader: reads the texts as queries."""

    def __init__(self, models: StoredModels, catalog: StoredCatalog) -> None:
        self.models, self.catalog = models, catalog
        self.reader = QueryReader(models, catalog, Lexicon(models))

    @property
    def columns(self) -> list[str]:
        """The columns that are searched."""
        return list(self.models.snapshot.facts["text_columns"])

    def vectors(self, query: Query) -> QueryVectors:
        """Return the embeddings of a query."""
        return QueryVectors(query, self.models, self.reader.lexicon)

    def notes(self, query: Query) -> list[str]:
        """Return the notes on a query for the user."""
        return query_notes(query, self.reader)

    def fused(
        self,
        query: str | Query,
        heads: Iterable[str] | None = None,
        preferences: Callable[[], Scores | None] | None = None,
        allowed: Filter = ALL_ITEMS,
        anyway: bool = False,
        is_typing: bool = False,
    ) -> Scores | None:
        """Return the requested heads as one; None where no head knows a word of the query.

        `preferences` makes the head of a user, which counts only where another head knows a word.
        The best of the allowed items are compared word by word in a second pass, if the build has
        tokens. The `notes` are of the main head. Unless `anyway`, there are no hits where the
        catalog does not answer the query, and only the items with a code where the query is that
        code. Raises `QkvError` for a head that is not available.
        """
        names = self.requested(heads, preferences is not None)
        query = self.reader.read(query) if isinstance(query, str) else query
        if query.codes.is_exact and LEXICAL in names and not anyway:
            code = query.codes.head(self.catalog)
            return code and fuse([code], [1.0])
        vectors = self.vectors(query)
        by_text = [name for name in names if name not in (PERSONAL, TOKENS)]
        if not self.columns:  # items without texts are found by their ids
            by_text = [LEXICAL]
        text_heads = {
            name: self._dense(name, vectors)
            if name != LEXICAL
            else self._lexical(query, allowed.mask)
            for name in by_text
        }
        known = {name: head for name, head in text_heads.items() if head is not None}
        weights = self._weights(known, query)
        known = {name: head for name, head in known.items() if weights[name] > 0}
        if preferences is not None and PERSONAL in names and (known or not by_text):
            personal = preferences()
            if personal is not None:
                known[PERSONAL] = personal.renamed(PERSONAL)
                weights[PERSONAL] = PREFERENCES_WEIGHT
        if not known:
            return None if query.text.strip() else self._by_conditions(query)
        with_prefix = self._with_prefix(query) if is_typing else None

        def fuse_all(scores: Mapping[str, Scores]) -> Scores:
            fused = fuse(list(scores.values()), [weights[name] for name in scores])
            if with_prefix is None:
                return fused
            return plus(fused, BEGINNING, PREFIX_BONUS * with_prefix.astype(np.float32))

        allowed = replace(allowed, k=max(allowed.k, DEPTH))
        scores, fused = fuse_candidates(known, fuse_all, allowed, with_prefix)
        is_answered = self._is_answered(query, {name: scores.get(name) for name in by_text})
        if not (is_answered or anyway):
            nothing = np.zeros(len(fused.scores), dtype=bool)
            return replace(fused, covered=nothing, notes=[NOTHING])
        if TOKENS in names:
            second = self._late_interaction(vectors)
            main = self.models.main_head
            weight = SECOND_PASS[main] * (self.models.head_weights[main] or weights.get(main, 0.0))
            fused = rerank(fused, second, weight, allowed.mask)
        notes = self._notes(vectors) if self.models.main_head in known else []
        raw = {name: scores[name] for name in by_text if name in scores}
        return replace(fused, notes=notes if is_answered else [NEAREST, *notes], raw=raw)

    def head(self, name: str, text: str) -> Scores | None:
        """Return a head's scores; None if it knows no word. Raises `QkvError` if it is unknown."""
        names = list(self.models.head_weights)
        if name not in names:
            raise QkvError(f"no head {name!r}{suggest(name, names)} (there are {', '.join(names)})")
        query = self.reader.read(text)
        if name == LEXICAL:
            return self._lexical(query)
        return score_candidates(self._dense(name, self.vectors(query)))

    def matching(
        self, query: Query, heads: Iterable[str] | None, mask: np.ndarray, ranking: Ranking
    ) -> np.ndarray:
        """Return the items of `mask` that match the query, bool (n_items,): those that its
        conditions leave if it has no text, otherwise those that may be hits and are among
        `answerable.matches`, and where these are none the hits of `ranking`.
        """
        if not ranking.n_candidates:
            return np.zeros_like(mask)
        if not query.text.strip():
            return mask
        names, dense = self.requested(heads, False), judging_head(self.models)
        lexical = self._lexical(query) if LEXICAL in names else None
        # An encoder learned from the catalog tells too little of a single item.
        is_used = dense in names and not (dense in LEARNED and LEXICAL in names)
        vectors = self.vectors(query).of_head(dense) if is_used else None
        allowed = mask if ranking.head is None else ranking.head.allowed(mask)
        is_match = allowed & matches(self.models, query.tokens, lexical, vectors)
        if not is_match.any():
            is_match[ranking.positions] = True
        return is_match

    def with_match(self, ranking: Ranking, query: Query) -> Ranking:
        """Return each hit with its `match`, by `answerable.grades`; None for a query of conditions
        alone.
        """
        graded: Sequence[str | None] = [None] * len(ranking)
        if len(ranking) and ranking.head is not None and ranking.head.raw:
            codes = query.codes.head(self.catalog)
            graded = grades(self.models, query, ranking.head, ranking.positions, codes)
        return ranking.annotated(match=graded)

    def with_snippets(self, ranking: Ranking, query: Query) -> Ranking:
        """Return each hit with the passage of its longest text that has the most of the query's
        words, or else the most similar meaning; None for an item without such a text.
        """
        terms = {expansion.term for term in query.terms for expansion in term.expansions}
        keys = self.models.lexical_keys
        idf = {t: float(inverse_document_frequency(keys.n_with(t), keys.n_items)) for t in terms}
        snippets = [self._snippet(int(row), idf, query) for row in ranking.positions]
        return ranking.annotated(snippet=snippets)

    def with_matches(self, ranking: Ranking, query: Query) -> Ranking:
        """Return each hit with `matches`: by column, the words that the lexical head matches."""
        terms = {expansion.term for term in query.terms for expansion in term.expansions}
        all_matches = []
        for position in map(int, ranking.positions):
            pause()
            texts = dict(zip(self.columns, self.texts(position), strict=True))
            cells = query.codes.cells(self.catalog, position)
            all_matches.append(cells | matching_words(terms, texts, self.models.analyzer))
        return ranking.annotated(matches=all_matches)

    def pieces(self, head: str, position: int) -> LabelledVectors:
        """Return an item's texts as the sum that its key is in a dense head."""
        weights, encoder = self.models.column_weights(head), self.models.encoder(head)
        pieces = item_pieces(encoder, self.texts(position) or [""], weights)
        if encoder.table is not None:
            return pieces
        from qkvsearch.text.pretrained.onnx_layers import MIN_COSINE

        # A transformer's stored key may come from the other runtime, which rounds differently. Any
        # larger difference is an error, and should show in the sum.
        key = self.models.dense_keys(head).vectors[np.array([position])][0]
        is_rounded = float(pieces.total @ key) >= MIN_COSINE
        return pieces.adding_up_to(key) if is_rounded else pieces

    def texts(self, position: int) -> list[str]:
        """Return the searched text of an item, column by column."""
        row, columns = self.catalog.row(position), self.catalog.catalog_columns
        return [text_read(row[name], columns.stored_as(name).type) for name in self.columns]

    def requested(self, heads: Iterable[str] | None, personal: bool) -> list[str]:
        """Return the names of the requested heads, by default of all that have a weight. "semantic"
        stands for all dense heads; a user adds one. Raises `QkvError`.
        """
        head_weights = self.models.head_weights
        main = self.models.main_head
        text = list(head_weights)
        default = [name for name in text if head_weights[name] > 0]
        available = list(text)
        if self.models.has_tokens and main in SECOND_PASS:
            available.append(TOKENS)
            if head_weights[main] > 0:
                default.append(TOKENS)
        if personal:
            available.append(PERSONAL)
            default.append(PERSONAL)
        hint = f"(there are {', '.join(available)}, and semantic for {', '.join(text[1:])})"
        names: set[str] = set()
        for name in default if heads is None else heads:
            if name == PERSONAL and not personal:
                raise QkvError(
                    f"the {PERSONAL} head is what a user prefers: name the user (`user`)"
                )
            if name not in available and name != "semantic":
                raise QkvError(f"no head {name!r}{suggest(name, [*available, 'semantic'])} {hint}")
            names.update(self.models.dense_heads if name == "semantic" else [name])
        if not names:
            raise QkvError(f"no heads to score by {hint}")
        if names == {TOKENS}:
            raise QkvError(
                f"the {TOKENS} head only re-ranks hits of other heads: name one too {hint}"
            )
        return [name for name in available if name in names or name == PERSONAL]

    def _weights(self, names: Iterable[str], query: Query) -> dict[str, float]:
        """Return the weights of these heads of the build, for one query.

        A head to which the build gave no weight takes no part beside others. Where no other of
        these knows the query, such heads rank by themselves, all with the same weight.
        """
        weights = {name: self.models.head_weights[name] for name in names}
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1.0)
        for name in weights:
            if name != LEXICAL:
                weights[name] *= query.certainty
        return weights

    def _dense(self, name: str, vectors: QueryVectors) -> Scores | ApproximateQuery | None:
        """Return the scores of a dense head; None where its encoder knows no word."""
        keys = self.models.dense_keys(name)
        return keys.head(name, vectors.of_head(name), partial(self.pieces, name))

    def _lexical(self, query: Query, mask: np.ndarray | None = None) -> Scores | None:
        """Return the scores of words, their pairs, and codes; None where no item has any."""
        words, codes = self.models.lexical_keys.head(query.terms), query.codes.head(self.catalog)
        pairs = words and word_pairs(
            query.tokens, query.words.largest, words, self.models.words, mask
        )
        known = [head for head in (words, pairs, codes) if head is not None]
        return summed(known) if known else None

    def _is_answered(self, query: Query, heads: Mapping[str, Scores | None]) -> bool:
        if query.stop_words_mask is not None:
            return bool(query.stop_words_mask.any())
        return answerable(self.models, query.words, heads, bool(query.codes.tokens)).answers

    def _late_interaction(self, vectors: QueryVectors) -> LateInteraction | None:
        """Return the query's words, to attend over those of items; None where there are none."""
        encoder = self.models.encoder(self.models.main_head)

        def labels_of(position: int) -> Sequence[str]:
            return token_labels(encoder, self.texts(position))

        labels = vectors.token_labels()
        late = late_interaction(
            vectors.encoded.tokens,
            self.models.token_keys,
            self.models.lexical_keys,
            labels_of,
            boosts=np.array([boost for _, boost in labels]),
            analyzer=self.models.analyzer,
        )
        names = [name for name, _ in labels]
        return late and replace(late, query=replace(late.query, labels=names))

    def _with_prefix(self, query: Query) -> np.ndarray | None:
        """Return the items that begin as typed, bool (n_items,); None where no word is typed."""
        words = [token.text for token in self.models.analyzer.tokens(query.typed)]
        return self.models.words.items_with_prefix(words) if words else None

    def _by_conditions(self, query: Query) -> Scores | None:
        """Return the same score for all items where a query has conditions alone, and for an empty
        one their popularity.
        """
        if query.conditions.mask is None and query.typed.strip():
            return None
        is_empty = not query.typed.strip()
        if is_empty and self.models.implicit is not None:
            return replace(popularity(self.models.item_counts), notes=[BY_POPULARITY])
        scores, parts = np.zeros(self.models.n_items, np.float32), Components.of([])
        return Scores(CONDITIONS, scores, lambda position: parts, notes=[BY_ID] * is_empty)

    def _notes(self, vectors: QueryVectors) -> list[str]:
        """Say how much of the text was too long for the main head to read."""
        head, n = self.models.main_head, vectors.n_unread
        if not n:
            return []
        return [
            f"The query is longer than {head}'s {self.models.encoder(head).limit} tokens: it did "
            f"not read the last {'word' if n == 1 else f'{n:,} words'}."
        ]

    def _snippet(self, position: int, idf: Mapping[str, float], query: Query) -> str | None:
        pause()
        texts = zip(self.columns, self.texts(position), strict=True)
        text = max((text for name, text in texts if name != "title"), key=len, default="")
        if not text.strip():
            return None
        if (passage := snippet(text, idf, self.models.analyzer)) is not None:
            return passage
        spans = passages(text)
        if len(spans) > 1 and query.text.strip():
            main = self.models.main_head
            vectors = self.models.encoder(main).encode_many([text[slice(*span)] for span in spans])
            query_vectors = self.vectors(query).of_head(main)
            best = int((vectors @ query_vectors.total).argmax()) if len(query_vectors) else 0
            return cut(text, *spans[best])
        return cut(text, 0, 0)


def popularity(counts: np.ndarray) -> Scores:
    """Return the number of users of each item as its score."""

    def parts(position: int) -> Components:
        return Components.of([ScoreComponent(POPULAR, None, None, float(counts[position]))])

    return Scores(POPULAR, counts.astype(np.float32), parts)
