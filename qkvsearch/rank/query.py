"""A query as the heads of a build read it: its words, what typos mean, and what must match."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch.heads.answerability import WordStatistics
from qkvsearch.heads.bm25 import Expansion, QueryTerm
from qkvsearch.heads.codes import QueryCodes
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.conditions import Conditions
from qkvsearch.rank.expansion import COMPLETED, MAX_CORRECTED, Change, Lexicon, Span, with_changes
from qkvsearch.rank.query_language import Clause, parse_query
from qkvsearch.store import StoredCatalog
from qkvsearch.text.analysis import Analyzer, Token, resolve_code
from qkvsearch.text.languages import ABOUT, KINDS

# The words of a query that are looked up in other ways than as they are, and the words of synonyms
# that are looked up beside them.
MAX_EXPANDED = MAX_SYNONYM_WORDS = 100
# The weight of words that name the kind of a thing: those before an "about", if they are few, and
# those that the name of the id column has ("movie" and "film" for `movieId`).
KIND_WEIGHT, MAX_KIND_WORDS = 0.3, 2
# A phrase of stop words matters where at most this share of the items has it.
MAX_PHRASE_SHARE = 0.05

# The name of a word in reasons, and its weight.
Label = tuple[Any, float]


@dataclass(frozen=True)
class Query:
    """A query as the heads of a build read it.

    typed: as the user typed it. clauses: its text and its operators, without n_ignored further
    operators. conditions: what the operators demand of an item. text: what the heads read: the
    corrected text without conditions on columns that search does not read. changes: the words that
    are read as others. tokens: the words of the lexical head, without stop words unless there are
    no others; words: what the catalog has of them. terms: each token with all forms that it is
    looked up by, and words of synonyms. has_more_synonyms: whether there are more of them than are
    looked up. codes: the ids and other codes of items in the text. labels: by changed or boosted
    word, folded, its name in reasons and its weight. completions: the words that the last word may
    become while the user types it, with the likelihood of each; last_prefix: its beginning as
    typed; unfinished: the word that it is read as until then, "" if it is a whole word.
    stop_words_mask: for a text of stop words alone, bool (n_items,), the items that it may mean;
    None for any other text.
    """

    typed: str
    clauses: Sequence[Clause]
    n_ignored: int
    conditions: Conditions
    text: str
    changes: Sequence[Change]
    tokens: Sequence[Token]
    words: WordStatistics
    terms: Sequence[QueryTerm]
    has_more_synonyms: bool
    codes: QueryCodes
    labels: Mapping[str, Label]
    completions: Sequence[tuple[str, float]]
    last_prefix: str
    unfinished: str
    stop_words_mask: np.ndarray | None

    @property
    def certainty(self) -> float:
        """How likely, from 0 to 1, the user means the words that are read, where the last one is
        unfinished: the weight of the dense heads.
        """
        if not self.unfinished:
            return 1.0
        return 1 - (1 - self.completions[0][1]) / len(self.tokens)

    def label(self, word: Any) -> Label:
        """Return the name of a word in reasons, and its weight."""
        return self.labels.get(fold(str(word)), (word, 1.0))

    def mask(self, mask: np.ndarray, anyway: bool = False) -> np.ndarray:
        """Return the items of `mask` that may be ranked. With `anyway`, stop words may rank all."""
        mask = self.conditions.apply(mask)
        return mask if anyway or self.stop_words_mask is None else mask & self.stop_words_mask


@dataclass(frozen=True)
class QueryReader:
    """A reader of queries to one build."""

    models: StoredModels
    catalog: StoredCatalog
    lexicon: Lexicon

    def read(self, typed: str, is_typing: bool = False) -> Query:
        """Read a query. is_typing: whether the user is still typing the last word."""
        clauses, n_ignored = parse_query(typed, self.catalog.catalog_columns.has)
        conditions = Conditions.of(clauses, self.models, self.catalog)
        texts, changes = self._corrected(clauses, is_typing)
        text = " ".join(part for part, _ in texts)
        all_tokens = self.models.analyzer.tokens(text)
        tokens = self.models.analyzer.query_tokens(text)
        tokens = resolve_code(tokens, self.models.lexical_keys.has)

        last = tokens[-1].text if is_typing and tokens else ""
        typed_prefixes = [fold(clause.text) for clause in clauses if clause.kind == "prefix"]
        completed = {fold(c.read): fold(c.typed) for c in changes if c.kind == "prefix"}
        prefixes = {word: word for word in [*typed_prefixes, last] if word} | completed
        last_prefix = prefixes.get(last, "")
        completions = self.lexicon.completions(last_prefix) if last else []

        kinds = _kind_words(all_tokens, self.models.analyzer, self._kinds)
        labels = self._labels(texts, changes, kinds)
        expansions = {
            word: self._completed(prefix, word == last, completions, prefix != word)
            for word, prefix in prefixes.items()
        }
        terms = [
            self._term(token, i < MAX_EXPANDED, expansions.get(token.text, ()), labels)
            for i, token in enumerate(tokens)
        ]
        synonyms = list(islice(self.lexicon.synonyms.of_several_words(text), MAX_SYNONYM_WORDS + 1))
        # A word after a field is a condition, however common it is: `country:IT`.
        has_field = any(clause.field for _, clause in texts)
        is_stop_words = bool(all_tokens) and all(token.is_stop_word for token in all_tokens)
        return Query(
            typed=typed,
            clauses=clauses,
            n_ignored=n_ignored,
            conditions=conditions,
            text=text,
            changes=changes,
            tokens=tokens,
            words=WordStatistics.of(self.models.lexical_keys, tokens),
            terms=[*terms, *synonyms[:MAX_SYNONYM_WORDS]],
            has_more_synonyms=len(synonyms) > MAX_SYNONYM_WORDS,
            codes=QueryCodes.of(text, self.models),
            labels=labels,
            completions=completions,
            last_prefix=last_prefix,
            unfinished=last if len(completions) > 1 and last in completed else "",
            stop_words_mask=(
                self._titled(text, all_tokens) if is_stop_words and not has_field else None
            ),
        )

    @cached_property
    def _kinds(self) -> set[str]:
        """The terms for the kind of the items that the name of the id column has."""
        columns = self.models.snapshot.facts["columns"]
        ids = [column["name"] for column in columns if column["role"] == "id"]
        named = {part.lower() for name in ids for part in re.findall("[A-Z]?[a-z]+", name)}
        words = [word for kind in KINDS if named.intersection(kind) for word in kind]
        return {token.term for token in self.models.analyzer.tokens(" ".join(words))}

    def is_read(self, clause: Clause) -> bool:
        """Return whether the heads read a clause: one without a minus, about searched columns."""
        if clause.excluded:
            return False
        searched = self.models.snapshot.facts["text_columns"]
        columns = self.catalog.catalog_columns
        return not clause.field or columns.find(clause.field).stored in searched

    def _corrected(
        self, clauses: Sequence[Clause], is_typing: bool
    ) -> tuple[list[tuple[str, Clause]], list[Change]]:
        """Return the corrected text of each clause that is read, and all changes."""
        texts: list[tuple[str, Clause]] = []
        changes: list[Change] = []
        clauses = [clause for clause in clauses if self.is_read(clause)]
        for i, clause in enumerate(clauses):
            changed: list[tuple[Span, Change]] = []
            is_text = not clause.field and clause.kind != "phrase"
            if is_text and i < MAX_CORRECTED:
                is_prefix = clause.kind == "prefix" or (is_typing and clause is clauses[-1])
                changed = self.lexicon.changes(clause.text, is_prefix)
            texts.append((with_changes(clause.text, changed), clause))
            changes += [change for _, change in changed]
        return texts, changes

    def _completed(
        self,
        prefix: str,
        is_last: bool,
        completions: Sequence[tuple[str, float]],
        is_completed: bool,
    ) -> list[Expansion]:
        """Return the words that begin with a prefix, as other ways to find the word."""
        # An unfinished word may become each of them as well as the one that it is read as.
        weight = 1.0 if is_last and is_completed else COMPLETED
        words = [w for w, _ in completions] if is_last else self.lexicon.prefix_words(prefix)[0]
        tokens_of = self.models.analyzer.tokens
        return [Expansion(t.term, word, weight) for word in words for t in tokens_of(word)]

    def _term(
        self,
        token: Token,
        is_expanded: bool,
        completed: Sequence[Expansion],
        labels: Mapping[str, Label],
    ) -> QueryTerm:
        """Return a word with all that it is looked up by."""
        term = self.lexicon.term(token) if is_expanded else QueryTerm.of(token)
        if completed:
            term = term.also(completed)
        if token.text not in labels:
            return term
        label, boost = labels[token.text]
        return term._replace(text=label, boost=boost)

    def _labels(
        self, texts: Sequence[tuple[str, Clause]], changes: Sequence[Change], kinds: Sequence[str]
    ) -> dict[str, Label]:
        labels: dict[str, Label] = {kind: (f"{kind} ×{KIND_WEIGHT}", KIND_WEIGHT) for kind in kinds}
        tokens_of = self.models.analyzer.tokens
        for text, clause in texts:
            if clause.boost != 1:
                for token in tokens_of(text):
                    labels[token.text] = (f"{token.text} ×{clause.boost:g}", clause.boost)
        for change in changes:
            for token in tokens_of(change.read):
                _, boost = labels.get(token.text, ("", 1.0))
                labels[token.text] = (change.label, boost * change.weight)
        return labels

    def _titled(self, text: str, tokens: Sequence[Token]) -> np.ndarray:
        """Return which items a text of stop words may mean, bool (n_items,): those with this title,
        or else a title that begins with its several words, or else those that have it as a phrase,
        if they are few.
        """
        typed, mask = fold(" ".join(text.split())), np.zeros(self.models.n_items, dtype=bool)
        titles = list(self._titles_of([token.text for token in tokens]))
        same = [i for i, title in titles if title == typed]
        longer = [i for i, title in titles if title.startswith((f"{typed} ", f"{typed},"))]
        mask[same or (longer if len(tokens) > 1 else [])] = True
        if mask.any():
            return mask
        phrase = Clause(text, "phrase")
        mask = Conditions.of([phrase], self.models, self.catalog).apply(~mask)
        return mask if mask.mean() <= MAX_PHRASE_SHARE else np.zeros_like(mask)

    def _titles_of(self, words: list[str]) -> Iterator[tuple[int, str]]:
        """Yield row number and folded title of the items whose title is one word, or begins with
        several.
        """
        index, columns = self.models.words, self.models.snapshot.facts["text_columns"]
        if columns[:1] != ["title"]:
            yield from ((i, fold(str(title))) for i, title in self.catalog.column("title"))
            return
        rows = np.flatnonzero(index.items_starting_with(words, is_whole=len(words) == 1))
        _, titles = self.catalog.names(rows)
        yield from zip(rows.tolist(), map(fold, titles), strict=True)


def _kind_words(tokens: Sequence[Token], analyzer: Analyzer, kinds: Container[str]) -> list[str]:
    """Return the words of a query that name a kind, beside others: those with a term of `kinds`,
    and those before an "about", if they are few.

    >>> _kind_words(Analyzer().tokens("a story about boxing movies"), Analyzer(), {"movi"})
    ['story', 'movies']
    """
    words_for_about = ABOUT.get(analyzer.language, ())
    about = next((i for i, token in enumerate(tokens) if token.text in words_for_about), 0)
    before = [token.text for token in tokens[:about] if not token.is_stop_word]
    named = before if len(before) <= MAX_KIND_WORDS else []
    named += [token.text for token in tokens if token.term in kinds and token.text not in named]
    if all(token.is_stop_word or token.text in named for token in tokens):
        return []
    return named
