"""A query as the heads of a build read it: its words, what typos mean, and what must match.

`QueryReader.read` takes these steps. The example is "red guitr les", while somebody is typing:

1. Operators split the query into clauses (`query_language.Clause`): here one, of text.
2. Words that the catalog lacks are read as others (`expansion.Change`): "guitr" as "guitar", a
   misspelling; "les" as "lesson", its likeliest completion. The result is `Understood`.
3. The corrected text, "red guitar lesson", is split into words (`Token`).
4. Each word is looked up by several terms (`bm25.QueryTerm`, made of `Expansion`s): "lesson" also
   by "lesser" and all other words that begin with "les" (`UnfinishedWord`).
5. A changed word counts less, and reasons show it by another name (`Label`): "guitr → guitar ×0.8".
6. All that the heads need of this is one object (`Lookup`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch.heads.answerability import WordStatistics
from qkvsearch.heads.bm25 import Expansion, QueryTerm
from qkvsearch.heads.codes import QueryCodes
from qkvsearch.heads.lookup import Label, Lookup, UnfinishedWord
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.title_head import half_titled, has_titles, titled
from qkvsearch.rank.conditions import Conditions
from qkvsearch.rank.expansion import COMPLETED, MAX_CORRECTED, Change, Lexicon
from qkvsearch.rank.query_language import Clause, is_sign, parse_query
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_types import type_named
from qkvsearch.text.analysis import RUNS, Analyzer, Token, resolve_code
from qkvsearch.text.languages import ABOUT, KINDS

# Only so many words of a query are looked up in other forms than their own.
MAX_EXPANDED = 100
# Only so many words of synonyms are looked up beside them.
MAX_SYNONYM_WORDS = 100
# The weight of words that name the kind of a thing. In "a story about boxing" it is "story"; in a
# catalog whose id column is `movieId`, "movie" and "film".
KIND_WEIGHT = 0.3
# More words before an "about" tell more than a kind.
MAX_KIND_WORDS = 2
# A phrase of stop words matters where at most this share of the items has it.
MAX_PHRASE_SHARE = 0.05


@dataclass(frozen=True)
class TypedQuery:
    """What was typed."""

    # The text of the search box.
    text: str
    # Its text and its operators.
    clauses: Sequence[Clause]
    # How many operators were typed beyond the `MAX_OPERATORS` that count.
    n_ignored: int

    @property
    def without_conditions(self) -> str:
        """The text without what the operators demand: the words of a phrase stay, and those that a
        column shall have go.
        """
        return " ".join(
            clause.text for clause in self.clauses if not clause.is_condition or clause.is_plain
        )


@dataclass(frozen=True)
class Understood:
    """What was understood."""

    # What is searched for: the corrected text, without conditions on columns that search does not
    # read.
    text: str
    # What an item may have as its whole title: the text without what columns are asked for. It is
    # empty where a word stands for all that begin so.
    title: str
    # The words that are read as others.
    changes: Sequence[Change]
    # What the operators demand of an item.
    conditions: Conditions
    # The items that a text of stop words alone may mean, bool (n_items,); None for any other text.
    stop_words_mask: np.ndarray | None
    # The items of which the text has half the title, bool (n_items,); None without any.
    half_titled: np.ndarray | None


@dataclass(frozen=True)
class Query:
    """A query as a build reads it."""

    typed: TypedQuery
    understood: Understood
    lookup: Lookup

    @property
    def has_text(self) -> bool:
        """Whether it is more than conditions."""
        return bool(self.understood.text.strip())

    def as_typed(self, word: str) -> str:
        """Return a folded word with the capitals and accents that it was typed with."""
        return self._typed_words.get(word, word)

    @cached_property
    def _typed_words(self) -> dict[str, str]:
        return {fold(word): word for word in RUNS.findall(self.typed.text)}

    @property
    def is_too_common(self) -> bool:
        """Whether it consists of stop words, and no item is meant by them."""
        mask = self.understood.stop_words_mask
        return mask is not None and not mask.any()

    def mask(self, mask: np.ndarray, anyway: bool = False) -> np.ndarray:
        """Return the items of `mask` that may be ranked. With `anyway`, stop words may rank all."""
        mask = self.understood.conditions.apply(mask)
        stop_words_mask = self.understood.stop_words_mask
        return mask if anyway or stop_words_mask is None else mask & stop_words_mask


@dataclass(frozen=True)
class QueryReader:
    """A reader of queries to one build."""

    models: StoredModels
    catalog: StoredCatalog
    lexicon: Lexicon

    def read(self, typed: str, is_typing: bool = False) -> Query:
        """Read a query. is_typing: whether the user is still typing the last word."""
        clauses, n_ignored = parse_query(typed, self.catalog.catalog_columns.has)
        is_plain = all(clause.is_plain for clause in clauses)
        begun = half_titled(self.models, self.models.analyzer.tokens(typed)) if is_plain else None
        # The last word of half a title is the beginning of another, as while it is typed.
        read_clauses, changes = self._corrected(clauses, is_typing or begun is not None)
        text = " ".join(clause.text for clause in read_clauses)
        tokens = self.models.analyzer.tokens(text)
        understood = Understood(
            text=text,
            title=_title(read_clauses, changes),
            changes=changes,
            conditions=Conditions.of(clauses, self.models, self.catalog),
            stop_words_mask=self._stop_words_mask(text, tokens, read_clauses),
            half_titled=begun,
        )
        kinds = _kind_words(tokens, self.models.analyzer, self._kinds)
        labels = self._labels(read_clauses, changes, kinds)
        beginnings = _beginnings(clauses, changes)
        return Query(
            typed=TypedQuery(typed, clauses, n_ignored),
            understood=understood,
            lookup=self._lookup(text, beginnings, labels, is_typing),
        )

    def _lookup(
        self, text: str, beginnings: Mapping[str, str], labels: Mapping[str, Label], is_typing: bool
    ) -> Lookup:
        """Return how the corrected text is looked up. beginnings: see `_beginnings`."""
        tokens = self.models.analyzer.query_tokens(text)
        tokens = resolve_code(tokens, self.models.lexical_keys.has)
        last_word = self._last_word(tokens, beginnings) if is_typing else None
        others = {
            word: self._completed(word, beginnings, last_word)
            for word in {token.text for token in tokens}
        }
        for pair in self.lexicon.joined(text):
            for token in (pair.first, pair.second):
                others[token.text].append(pair.expansion)
        terms = []
        for i, token in enumerate(tokens):
            terms.append(self._term(token, i < MAX_EXPANDED, others[token.text], labels))
        synonyms = list(islice(self.lexicon.synonyms.of_several_words(text), MAX_SYNONYM_WORDS + 1))
        is_ambiguous = last_word is not None and last_word.is_ambiguous
        return Lookup(
            tokens=tokens,
            words=WordStatistics.of(self.models.lexical_keys, tokens),
            terms=[*terms, *synonyms[:MAX_SYNONYM_WORDS]],
            has_more_synonyms=len(synonyms) > MAX_SYNONYM_WORDS,
            codes=QueryCodes.of(text, self.models),
            labels=labels,
            unfinished=last_word if is_ambiguous else None,
        )

    def _last_word(
        self, tokens: Sequence[Token], beginnings: Mapping[str, str]
    ) -> UnfinishedWord | None:
        """Return the last word while it is typed; None where there are no words."""
        if not tokens:
            return None
        word = tokens[-1].text
        prefix = beginnings.get(word, word)
        return UnfinishedWord(word, prefix, self.lexicon.completions(prefix))

    def _completed(
        self, word: str, beginnings: Mapping[str, str], last_word: UnfinishedWord | None
    ) -> list[Expansion]:
        """Return the words that begin alike and are looked up beside a word; none for most words.

        last_word: None unless the user is typing.
        """
        if last_word is not None and word == last_word.word:
            # A completion is no likelier than the others to be meant, but a word of the catalog is.
            weight = 1.0 if last_word.is_completed else COMPLETED
            completions = [completion for completion, _ in last_word.completions]
            return self._expansions(completions, weight)
        if word in beginnings:
            words, _ = self.lexicon.prefix_words(beginnings[word])
            return self._expansions(words, COMPLETED)
        return []

    @cached_property
    def _kinds(self) -> set[str]:
        """The terms for the kind of the items that the name of the id column has."""
        columns = self.models.snapshot.facts["columns"]
        ids = [column["name"] for column in columns if column["role"] == "id"]
        named = {part.lower() for name in ids for part in re.findall("[A-Z]?[a-z]+", name)}
        words = [word for kind in KINDS if named.intersection(kind) for word in kind]
        return {token.term for token in self.models.analyzer.tokens(" ".join(words))}

    def is_read(self, clause: Clause) -> bool:
        """Return whether the heads read a clause: one without a minus, about searched columns. No
        head knows the signs that a column is asked for.
        """
        if clause.excluded or (clause.field and is_sign(clause.text)):
            return False
        searched = self.models.snapshot.facts["text_columns"]
        if not clause.field:
            return True
        column = self.catalog.catalog_columns.find(clause.field)
        # A date is compared, and its words are found by a text alone.
        return column.stored in searched and not type_named(column.type).loses_words

    def _corrected(
        self, clauses: Sequence[Clause], is_typing: bool
    ) -> tuple[list[Clause], list[Change]]:
        """Return the clauses that are read, with corrected texts, and all changes."""
        clauses = [clause for clause in clauses if self.is_read(clause)]
        corrected: list[Clause] = []
        changes: list[Change] = []
        for i, clause in enumerate(clauses):
            is_text = not clause.field and clause.kind != "phrase"
            if not is_text or i >= MAX_CORRECTED:
                corrected.append(clause)
                continue
            is_last = clause is clauses[-1]
            is_unfinished = clause.kind == "prefix" or (is_typing and is_last)
            joined = self.lexicon.joined_text(clause.text)
            text, changed = self.lexicon.corrected_text(joined.text, is_unfinished)
            corrected.append(replace(clause, text=text))
            changes += [*joined.changes, *changed]
        return corrected, changes

    def _expansions(self, words: Sequence[str], weight: float) -> list[Expansion]:
        """Return the words as other ways to find one."""
        tokens_of = self.models.analyzer.tokens
        return [Expansion(t.term, word, weight) for word in words for t in tokens_of(word)]

    def _term(
        self,
        token: Token,
        is_expanded: bool,
        others: Sequence[Expansion],
        labels: Mapping[str, Label],
    ) -> QueryTerm:
        """Return a word with all that it is looked up by. others: such words of this query."""
        term = self.lexicon.term(token) if is_expanded else QueryTerm.of(token)
        if others:
            term = term.also(others)
        if token.text not in labels:
            return term
        label, boost = labels[token.text]
        return term._replace(text=label, boost=boost)

    def _labels(
        self, clauses: Sequence[Clause], changes: Sequence[Change], kinds: Sequence[str]
    ) -> dict[str, Label]:
        """Return the labels of words that name a kind, are boosted, or are read as others."""
        labels = {kind: Label(f"{kind} ×{KIND_WEIGHT}", KIND_WEIGHT) for kind in kinds}
        tokens_of = self.models.analyzer.tokens
        for clause in clauses:
            if clause.boost != 1:
                for token in tokens_of(clause.text):
                    labels[token.text] = Label(f"{token.text} ×{clause.boost:g}", clause.boost)
        for change in changes:
            for token in tokens_of(change.read):
                boost = labels[token.text].boost if token.text in labels else 1.0
                labels[token.text] = Label(change.label, boost * change.weight)
        return labels

    def _stop_words_mask(
        self, text: str, tokens: Sequence[Token], clauses: Sequence[Clause]
    ) -> np.ndarray | None:
        """Return the items that a text of stop words alone may mean; None for any other text."""
        # A word after a field is a condition, however common it is: `country:IT`.
        has_field = any(clause.field for clause in clauses)
        if has_field or not tokens or not all(token.is_stop_word for token in tokens):
            return None
        return self._titled(text, tokens)

    def _titled(self, text: str, tokens: Sequence[Token]) -> np.ndarray:
        """Return which items a text of stop words may mean, bool (n_items,).

        They are the items with this title. Where there are none, they are those whose title begins
        with it, if it has several words. Where there are none either, they are those that have it
        as a phrase, if they are few.
        """
        typed = fold(" ".join(text.split()))
        titles = list(self._titles_of(tokens))
        rows = [row for row, title in titles if title == typed]
        if not rows and len(tokens) > 1:
            beginnings = (f"{typed} ", f"{typed},")
            rows = [row for row, title in titles if title.startswith(beginnings)]
        mask = np.zeros(self.models.n_items, dtype=bool)
        if rows:
            mask[rows] = True
            return mask
        phrase = Conditions.of([Clause(text, "phrase")], self.models, self.catalog)
        has_phrase = phrase.apply(~mask)
        return has_phrase if has_phrase.mean() <= MAX_PHRASE_SHARE else mask

    def _titles_of(self, words: Sequence[Token]) -> Iterator[tuple[int, str]]:
        """Yield row number and folded title of the items whose title is one word, or begins with
        several.
        """
        if not has_titles(self.models):
            # Only the words of the first searched column are found without reading all titles.
            for row, title in self.catalog.column("title"):
                yield row, fold(str(title))
            return
        rows = titled(self.models, words, is_whole=len(words) == 1)
        _, titles = self.catalog.names(rows)
        yield from zip(rows.tolist(), map(fold, titles), strict=True)


def _title(clauses: Sequence[Clause], changes: Sequence[Change]) -> str:
    """Return the text that may be a title: "" where a word of it is only the beginning of others.

    >>> _title([Clause("drama", field="genre"), Clause("the piano")], [])
    'the piano'
    """
    has_beginning = any(clause.kind == "prefix" for clause in clauses)
    if has_beginning or any(change.kind == "prefix" for change in changes):
        return ""
    return " ".join(clause.text for clause in clauses if not clause.field)


def _beginnings(clauses: Sequence[Clause], changes: Sequence[Change]) -> dict[str, str]:
    """Return the words that stand for all words with the same beginning, and the beginning of each.

    There are two kinds. `bre*` stands for the words that begin with "bre". A word that was typed in
    part is read as its likeliest completion, and stands for the words that begin as it was typed.

    >>> _beginnings([Clause("bre", "prefix")], [Change("gui", "guitar", 1, "prefix")])
    {'bre': 'bre', 'guitar': 'gui'}
    """
    beginnings = {}
    for clause in clauses:
        if clause.kind == "prefix":
            word = fold(clause.text)
            beginnings[word] = word
    for change in changes:
        if change.kind == "prefix":
            beginnings[fold(change.read)] = fold(change.typed)
    return beginnings


def _kind_words(tokens: Sequence[Token], analyzer: Analyzer, kinds: Container[str]) -> list[str]:
    """Return the words of a query that name the kind of a thing, beside words that tell more.

    A word names a kind if it has a term of `kinds`, or if it comes before an "about" and only a few
    others do.

    >>> _kind_words(Analyzer().tokens("a story about boxing movies"), Analyzer(), {"movi"})
    ['story', 'movies']
    """
    words_for_about = ABOUT.get(analyzer.language, ())
    about = next((i for i, token in enumerate(tokens) if token.text in words_for_about), 0)
    named = [token.text for token in tokens[:about] if not token.is_stop_word]
    if len(named) > MAX_KIND_WORDS:
        named = []
    named += [token.text for token in tokens if token.term in kinds and token.text not in named]
    if all(token.is_stop_word or token.text in named for token in tokens):
        return []
    return named
