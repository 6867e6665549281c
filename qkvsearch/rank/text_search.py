"""The search for a text: the heads of a build as one, and a user's preferences beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.errors import QkvError, suggest
from qkvsearch.heads.bm25 import inverse_document_frequency
from qkvsearch.heads.common_subjects import CommonSubjects, is_short
from qkvsearch.heads.dense_head import SEMANTIC
from qkvsearch.heads.dense_keys import ExactKeys
from qkvsearch.heads.first_head import FirstHead, QueryWording
from qkvsearch.heads.item_texts import ItemTexts
from qkvsearch.heads.late_interaction import DEPTH
from qkvsearch.heads.lexical_head import LEXICAL
from qkvsearch.heads.passages import Units
from qkvsearch.heads.query_vectors import QueryVectors
from qkvsearch.heads.search_head import Asked, SearchHead, TextHead
from qkvsearch.heads.search_heads import HEADS
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.taste_head import TASTE
from qkvsearch.heads.token_head import TOKENS
from qkvsearch.rank.answerable import NEAREST, NOTHING, answerable
from qkvsearch.rank.expansion import Lexicon
from qkvsearch.rank.grades import GOOD, STRONG, WEAK, grades, weak_items
from qkvsearch.rank.listing import column_key
from qkvsearch.rank.named_things import named_things, terms_by_word
from qkvsearch.rank.owner_rules import NO_RULES, QueryRules
from qkvsearch.rank.query import Query, QueryReader
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
from qkvsearch.scores.fusion import BestPassages, Scores, fuse
from qkvsearch.store import StoredCatalog
from qkvsearch.text.analysis import Token, matching_words

# The head of a query that consists of conditions alone: all items have the same score.
CONDITIONS = "conditions"
POPULAR = "popular"
BY_POPULARITY = "An empty query: the most popular items come first."
BY_ID = "An empty query: items are in the order of their ids."


class Preferred(NamedTuple):
    """Items that a head brings to the top."""

    head: FirstHead
    # bool (n_items,).
    items: np.ndarray


class FirstPass(NamedTuple):
    """The heads that know a query, and their weights, both by the names of the heads."""

    scores: dict[str, Scores | ApproximateQuery]
    weights: dict[str, float]

    def fused_by_passage(
        self, units: Units, preferred: Sequence[Preferred], rules: QueryRules
    ) -> tuple[Mapping[str, Scores], Scores]:
        """Return the same where passages are scored: each item has the scores of its best passage,
        the one with the highest sum of all heads.
        """
        of_units: dict[str, Scores] = {}
        for name, scored in self.scores.items():
            # Passages are scored exactly. A user's taste is of items.
            exact = score_candidates(scored)
            assert exact is not None
            of_units[name] = units.expanded(exact) if name == TASTE.name else exact
        fused = fuse(list(of_units.values()), [self.weights[name] for name in of_units])
        of_units_fused = fused.scores
        best = units.best(of_units_fused)
        fused = rules.boosted(units.of_items(fused, best))
        for head, items in preferred:
            fused = head.add(fused, items)
        by_head = {name: units.of_items(scores, best) for name, scores in of_units.items()}
        return by_head, replace(fused, best=BestPassages(best, of_units_fused))

    def fused(
        self, allowed: Filter, preferred: Sequence[Preferred], rules: QueryRules
    ) -> tuple[Mapping[str, Scores], Scores]:
        """Return the scores of each head, and of all heads together."""

        def fuse_all(scores: Mapping[str, Scores]) -> Scores:
            fused = fuse(list(scores.values()), [self.weights[name] for name in scores])
            fused = rules.boosted(fused)
            for head, items in preferred:
                fused = head.add(fused, items)
            return fused

        # The second pass compares so many hits, whatever is asked for.
        allowed = replace(allowed, k=max(allowed.k, DEPTH))
        first = [items for _, items in preferred]
        return fuse_candidates(self.scores, fuse_all, allowed, first, rules.placed_rows)


class TextSearch:
    """The heads by which a build answers texts."""

    def __init__(self, models: StoredModels, catalog: StoredCatalog) -> None:
        self.models, self.catalog = models, catalog
        self.item_texts = ItemTexts(models, catalog)
        self.reader = QueryReader(models, catalog, Lexicon(models, self.item_texts))

    def vectors(self, query: Query) -> QueryVectors:
        """Return the embeddings of a query."""
        return QueryVectors(query.lookup, self.models, self.reader.lexicon.meaning)

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
        rules: QueryRules = NO_RULES,
        mask: np.ndarray | None = None,
    ) -> Scores | None:
        """Return the requested heads as one; None where no head knows a word of the query.

        query: a text, or what the reader made of it.
        heads: names of heads, as `requested` has them.
        preferences: makes the scores of a user's taste, or None. It is called only where a head
            knows the query.
        allowed: the items that may be hits, and how many hits there shall be.
        mask: all items that may be ranked, bool (n_items,), where `allowed` has only some of them.
        anyway: also rank items where the catalog does not answer the query, which otherwise covers
            no item. Also rank items without the code where the query is a code.
        is_typing: whether items that begin as typed come first.
        rules: the owner's, whose boosts are added. `QueryRules.placed` has the rest.

        Raises `QkvError` for a head that is not available.
        """
        requested = self.requested(heads, preferences is not None)
        query = self.reader.read(query) if isinstance(query, str) else query
        units = self.models.units
        mask = allowed.mask if mask is None else mask
        asked = replace(self._asked(query, mask, units), subjects=self._subjects(query, requested))
        if query.lookup.codes.is_exact and LEXICAL in requested and not anyway:
            code = self._code(query)
            return None if code is None else rules.boosted(code)

        # The first pass scores all items.
        text_heads = self._text_heads(requested)
        first_pass = self._first_pass(text_heads, asked)
        if TASTE in requested and (first_pass.scores or not text_heads):
            self._add_taste(first_pass, preferences)
        if not first_pass.scores:
            return None if query.has_text else self._boosted_by_conditions(query, rules)
        preferred = self._preferred(asked, query, requested, is_typing)
        knows_text = any(head.name in first_pass.scores for head in text_heads)
        if units is None or not knows_text:
            by_head, fused = first_pass.fused(allowed, preferred, rules)
        else:
            by_head, fused = first_pass.fused_by_passage(units, preferred, rules)

        # A user's taste is no answer: only the heads of the text tell whether there is one.
        of_text = {head.name: by_head.get(head.name) for head in text_heads}
        answering = self._answering(asked, first_pass)
        # Characters of a query in other letters than the catalog's tell nothing.
        tokens = () if asked.is_in_other_letters else query.lookup.tokens
        judged = self._judged(of_text, first_pass)
        is_answered = self._is_answered(query, judged, tokens, answering)
        if not is_answered and not anyway:
            nothing = np.zeros(len(fused.scores), dtype=bool)
            return replace(fused, covered=nothing, notes=[NOTHING], is_answer=False)

        # The second pass compares the best items word by word.
        best = fused.best
        if TOKENS in requested:
            fused = TOKENS.rerank(fused, asked, first_pass.weights)
        notes = [] if is_answered else [NEAREST]
        if self.models.main_head in first_pass.scores:
            notes += self._unread_notes(asked.vectors)
        has_estimates = any(scores.exact_above is not None for scores in by_head.values())
        return replace(
            fused,
            notes=notes,
            is_answer=is_answered,
            raw=self._graded(of_text),
            best=best,
            near=_near(query, answering, best),
            has_estimates=has_estimates,
        )

    def head(self, name: str, text: str) -> Scores | None:
        """Return a head's scores; None if it knows no word. Raises `QkvError` if it is unknown."""
        available = [head for head in HEADS if head.is_in(self.models, has_user=False)]
        heads = {head.name: head for head in available if isinstance(head, TextHead)}
        if name not in heads:
            names = ", ".join(heads)
            raise QkvError(f"no head {name!r}{suggest(name, list(heads))} (there are {names})")
        query = self.reader.read(text)
        units = self.models.units
        scores = score_candidates(heads[name].scores(self._asked(query, units=units)))
        if scores is None or units is None or len(scores.scores) != len(units):
            return scores
        return units.of_items(scores, units.best(scores.scores))

    # --- the steps of a search ---

    def requested(self, heads: Iterable[str] | None, has_user: bool) -> list[SearchHead]:
        """Return the requested heads, by default all that have a weight.

        "semantic" stands for all dense heads. The preferences of a user always take part. Raises
        `QkvError` for a head that is not available.
        """
        available = {head.name: head for head in HEADS if head.is_in(self.models, has_user)}
        dense = self.models.dense_heads
        hint = f"(there are {', '.join(available)}, and {SEMANTIC.name} for {', '.join(dense)})"
        if heads is None:
            heads = [name for name, head in available.items() if head.is_default(self.models)]
        names: set[str] = set()
        for name in heads:
            if name == SEMANTIC.name:
                names.update(dense)
            elif name in available:
                names.add(name)
            elif name == TASTE.name:
                raise QkvError(
                    f"the {TASTE.name} head is what a user prefers: name the user (`user`)"
                )
            else:
                near = suggest(name, [*available, SEMANTIC.name])
                raise QkvError(f"no head {name!r}{near} {hint}")
        if not names:
            raise QkvError(f"no heads to score by {hint}")
        requested = [head for name, head in available.items() if name in names]
        if not any(head.ranks_alone for head in requested):
            only = " and ".join(sorted(names))
            raise QkvError(
                f"the {only} head only re-ranks hits of other heads: name one too {hint}"
            )
        if has_user and TASTE not in requested:
            requested.append(TASTE)
        return requested

    def _asked(
        self, query: Query, mask: np.ndarray | None = None, units: Units | None = None
    ) -> Asked:
        """Return what the heads are asked.

        mask: bool (n_items,), the items that may be hits. units: where passages are scored.
        """
        vectors = self.vectors(query)
        models, catalog, texts = self.models, self.catalog, self.item_texts
        return Asked(query.lookup, vectors, models, catalog, texts, mask, units)

    def _subjects(self, query: Query, heads: Sequence[SearchHead]) -> CommonSubjects | None:
        """Return what the main head's scores are compared with; None where it takes no part or has
        only estimates, and for a query of which the catalog has words.
        """
        models, subjects = self.models, self.models.subjects
        if subjects is None or not subjects.compares(query.lookup.words):
            return None
        name = models.main_head
        if not models.search_weights.get(name) or name not in {head.name for head in heads}:
            return None
        return subjects if isinstance(models.keys_in_search(name), ExactKeys) else None

    def _code(self, query: Query) -> Scores | None:
        """Return the items that have a code; None where none has it."""
        code = query.lookup.codes.head(self.catalog)
        return None if code is None else fuse([code], [1.0])

    def _text_heads(self, heads: Sequence[SearchHead]) -> list[TextHead]:
        """Return those of the heads that read the query."""
        if not self.item_texts.columns:  # items without texts are found by their ids
            return [LEXICAL]
        return [head for head in heads if isinstance(head, TextHead)]

    def _first_pass(self, heads: Sequence[TextHead], asked: Asked) -> FirstPass:
        """Return the scores of the heads that know the query, and their weights.

        A head to which the build gave no weight takes no part beside others. Where no other of
        these knows the query, such heads rank by themselves, all with the same weight.
        """
        scores: dict[TextHead, Scores | ApproximateQuery] = {}
        for head in heads:
            of_head = head.scores(asked)
            if of_head is not None:
                scores[head] = of_head
        weights = {head: head.weight(self.models) for head in scores}
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1.0)
        first_pass = FirstPass({}, {})
        for head, weight in weights.items():
            certain = weight * head.certainty(asked.query)
            if certain > 0:
                first_pass.scores[head.name] = scores[head]
                first_pass.weights[head.name] = certain
        return first_pass

    def _preferred(
        self, asked: Asked, query: Query, requested: Sequence[SearchHead], is_typing: bool
    ) -> list[Preferred]:
        """Return the items that come first, those of the strictest reason last."""
        understood = query.understood
        wording = QueryWording(
            query.typed.text, understood.title, understood.half_titled, is_typing
        )
        preferred: list[Preferred] = []
        for head in HEADS:
            if not isinstance(head, FirstHead) or (head.needs_words and LEXICAL not in requested):
                continue
            items = head.items(asked, wording)
            if items is not None:
                preferred.append(Preferred(head, items))
        return preferred

    def _add_taste(
        self, first_pass: FirstPass, preferences: Callable[[], Scores | None] | None
    ) -> None:
        """Add a user's preferences, if there are any."""
        of_user = preferences() if preferences is not None else None
        if of_user is not None:
            first_pass.scores[TASTE.name] = TASTE.scores(of_user)
            first_pass.weights[TASTE.name] = TASTE.weight

    def _boosted_by_conditions(self, query: Query, rules: QueryRules) -> Scores | None:
        """Return `_by_conditions` with the boosts of the owner."""
        by_conditions = self._by_conditions(query)
        if by_conditions is None:
            return None
        return rules.boosted(by_conditions, by_conditions.moments[1] or 1.0)

    def _by_conditions(self, query: Query) -> Scores | None:
        """Return the same score for all items where a query has conditions alone, and for an empty
        query their popularity; None where a query has neither text nor conditions.
        """
        is_empty = not query.typed.text.strip()
        if query.understood.conditions.mask is None and not is_empty:
            return None
        if is_empty and self.models.implicit is not None:
            return replace(popularity(self.models.item_counts), notes=[BY_POPULARITY])
        scores = np.zeros(self.models.n_items, np.float32)
        parts = Components.of([])
        notes = [BY_ID] if is_empty else []
        return Scores(CONDITIONS, scores, lambda position: parts, notes=notes)

    def _judged(
        self, of_text: Mapping[str, Scores | None], first_pass: FirstPass
    ) -> Mapping[str, Scores | None]:
        """Return the scores by which the build judges whether it answers. of_text: those of items,
        by the heads of the text.
        """
        if self.models.units is None:
            return of_text
        # The build calibrated the scores of all passages.
        return {name: score_candidates(first_pass.scores.get(name)) for name in of_text}

    def _answering(self, asked: Asked, first_pass: FirstPass) -> np.ndarray | None:
        """Return which items, or passages where these are scored, answer a query that is compared
        with `CommonSubjects`, bool (n,); None for another query.
        """
        name = self.models.main_head
        scores = first_pass.scores.get(name)
        if asked.subjects is None or not isinstance(scores, Scores):
            return None
        return asked.subjects.answers(scores, asked.vectors.of_head(name).total, asked.query.words)

    def _is_answered(
        self,
        query: Query,
        heads: Mapping[str, Scores | None],
        words: Sequence[Token],
        answering: np.ndarray | None,
    ) -> bool:
        """Return whether the catalog answers the query.

        heads: None for one that knows no word. words: by which its characters are looked up.
        answering: see `_answering`.
        """
        if query.understood.stop_words_mask is not None:
            return not query.is_too_common
        if query.understood.half_titled is not None:
            return True
        asked = query.lookup
        has_code = bool(asked.codes.tokens)
        tokens = self.models.analyzer.tokens(query.understood.text)
        things = named_things(self.models, tokens, terms_by_word(asked.tokens, asked.terms))
        return answerable(
            self.models, asked.words, heads, has_code, words, things, answering
        ).answers

    def _graded(self, heads: Mapping[str, Scores | None]) -> dict[str, Scores]:
        """Return the scores by which hits are graded: of the heads that the build calibrated.

        These are the heads whose weights it learned. Of a head of another kind, it does not know
        what texts without an answer score.
        """
        calibrated = self.models.head_weights
        return {
            name: scores
            for name, scores in heads.items()
            if scores is not None and name in calibrated
        }

    def _unread_notes(self, vectors: QueryVectors) -> list[str]:
        """Say how much of the text was too long for the main head to read."""
        head, n = self.models.main_head, vectors.n_unread
        if not n:
            return []
        words = "word" if n == 1 else f"{n:,} words"
        limit = self.models.encoder(head).limit
        return [
            f"The query is longer than {head}'s {limit} tokens: it did not read the last {words}."
        ]

    # --- what is added to the hits ---

    def with_match(
        self,
        ranking: Ranking,
        query: Query,
        weak: np.ndarray | None = None,
        pinned: Collection[int] = (),
    ) -> Ranking:
        """Return each hit with its `match`: strong, good or weak; None for conditions alone.

        All hits are weak where the catalog does not answer the query, and strong where it is a code
        that they have.

        weak: the items that were told to be weak already, bool (n_items,). Where most scores are
        estimates, another grade would be possible. pinned: the rows of the items that a rule of the
        owner pins; they are strong as well.
        """
        graded: Sequence[str | None] = [None] * len(ranking)
        if ranking.head is not None and not ranking.head.is_answer:
            graded = [WEAK] * len(ranking)
        elif len(ranking) and ranking.head is not None and ranking.head.raw:
            codes = query.lookup.codes.head(self.catalog)
            tokens = self.models.analyzer.tokens(query.understood.text)
            graded = grades(
                self.models, query.lookup, tokens, ranking.head, ranking.positions, codes
            )
        elif ranking.head is not None and query.lookup.codes.is_exact:
            graded = [STRONG] * len(ranking)
        begun = query.understood.half_titled if WEAK in graded else None
        if begun is not None:
            graded = [
                GOOD if grade == WEAK and is_begun else grade
                for grade, is_begun in zip(graded, begun[ranking.positions], strict=True)
            ]
        if weak is not None:
            is_weak = weak[ranking.positions].tolist()
            graded = [
                WEAK if told else (GOOD if grade == WEAK else grade)
                for told, grade in zip(is_weak, graded, strict=True)
            ]
        if pinned and query.has_text:
            # The owner says that it answers.
            graded = [
                STRONG if row in pinned else grade
                for row, grade in zip(ranking.positions.tolist(), graded, strict=True)
            ]
        return ranking.annotated(match=graded)

    def weak(self, query: Query, scores: Scores) -> np.ndarray:
        """Return the items whose `match` is weak, bool (n_items,)."""
        if not scores.is_answer:
            return np.ones(len(scores.scores), dtype=bool)
        if not scores.raw:
            return np.zeros(len(scores.scores), dtype=bool)
        codes = query.lookup.codes.head(self.catalog)
        tokens = self.models.analyzer.tokens(query.understood.text)
        weak = weak_items(self.models, query.lookup, tokens, scores, codes)
        begun = query.understood.half_titled
        return weak if begun is None else weak & ~begun

    def with_snippets(self, ranking: Ranking, query: Query) -> Ranking:
        """Return each hit with a passage of its longest text.

        It is the one that has the most of the query's words. Where none has any, it is the one with
        the most similar meaning. An item without such a text has None.
        """
        keys = self.models.lexical_keys
        idf = {
            term: float(inverse_document_frequency(keys.n_with(term), keys.n_items))
            for term in _terms(query)
        }
        snippets = [
            self._snippet(int(row), idf, query, hit.passage)
            for row, hit in zip(ranking.positions, ranking.hits, strict=True)
        ]
        return ranking.annotated(snippet=snippets)

    def with_matches(self, ranking: Ranking, query: Query) -> Ranking:
        """Return each hit with `matches`: by column, the words that the lexical head matches.

        Columns have the owner's names. Beside them `title` is the title, whatever its column is
        called, and a column of the owner that is called `title` or `id` is `items.title` or
        `items.id`, as in a row about an item.
        """
        all_matches = []
        for position in map(int, ranking.positions):
            pause()
            all_matches.append(self.matches_of(query, position))
        return ranking.annotated(matches=all_matches)

    def matches_of(self, query: Query, position: int) -> dict[str, list[str]]:
        """Return the words of an item that the lexical head matches, by column."""
        columns = self.item_texts.columns
        texts = dict(zip(columns, self.item_texts.of(position), strict=True))
        cells = query.lookup.codes.cells(self.catalog, position)
        matches = cells | matching_words(_terms(query), texts, self.models.analyzer)
        keys = {column.stored: column_key(column) for column in self.catalog.catalog_columns}
        return {keys[stored]: words for stored, words in matches.items()}

    def _snippet(
        self,
        position: int,
        idf: Mapping[str, float],
        query: Query,
        passage_of_hit: Mapping[str, Any] | None,
    ) -> str | None:
        """Return a part of an item's longest text, or of the best passage of a long one; None where
        an item has none beside its title.
        """
        pause()
        texts = zip(self.item_texts.columns, self.item_texts.of(position), strict=True)
        text = max((text for name, text in texts if name != "title"), key=len, default="")
        if passage_of_hit is not None:
            text = passage_of_hit["text"]
        if not text.strip():
            return None
        if (passage := snippet(text, idf, self.models.analyzer)) is not None:
            return passage
        spans = passages(text)
        if len(spans) > 1 and query.has_text:
            main = self.models.main_head
            vectors = self.models.encoder(main).encode_many([text[slice(*span)] for span in spans])
            query_vectors = self.vectors(query).of_head(main)
            best = int((vectors @ query_vectors.total).argmax()) if len(query_vectors) else 0
            return cut(text, *spans[best])
        return cut(text, 0, 0)


def _terms(query: Query) -> set[str]:
    """Return all terms that a query is looked up by."""
    return {expansion.term for term in query.lookup.terms for expansion in term.expansions}


def _near(
    query: Query, answering: np.ndarray | None, best: BestPassages | None
) -> np.ndarray | None:
    """Return which items are near a short query whose words the catalog lacks, bool (n_items,);
    None for another query. answering: see `TextSearch._answering`.
    """
    if answering is None or not is_short(query.lookup.words):
        return None
    return answering if best is None else answering[best.of_items]


def popularity(counts: np.ndarray) -> Scores:
    """Return the number of users of each item as its score."""

    def parts(position: int) -> Components:
        return Components.of([ScoreComponent(POPULAR, None, None, float(counts[position]))])

    return Scores(POPULAR, counts.astype(np.float32), parts)
