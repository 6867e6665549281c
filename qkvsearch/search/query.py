"""A query as the heads of a build read it: its words, what typos mean, and what must hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch.index import StoredModels
from qkvsearch.query.language import MAX_OPERATORS, Clause, ParsedQuery, parsed
from qkvsearch.retrieval.keys import Expansion, QueryTerm
from qkvsearch.search.codes import QueryCodes
from qkvsearch.search.conditions import Conditions
from qkvsearch.search.expansion import COMPLETED, MOST_LOOKED_UP, Change, with_changes
from qkvsearch.search.lexicon import MAX_EXPANSION, Lexicon
from qkvsearch.storage import StoredCatalog
from qkvsearch.text.analysis import HAS_CJK, Token, fold, resolve_code
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors
from qkvsearch.text.text_encoder import EncodedQuery

STOP_WORDS_ALONE = "These words are in so many texts that alone they say nothing."
# So many words of a query are looked up in other ways than as they are.
MOST_RELATED = 100
# How many unknown names of columns get a suggestion.
MAX_FIELD_NAMES = 6
# What looks like a condition on a column.
FIELD_TYPED = re.compile(r"(?<![^\s-])(\w+):(\w+)")
# Of longer queries most words may be missing.
MOST_TOLD = 6
# Whole numbers of 64 bits have no more; Python reads none of thousands.
MOST_DIGITS = 19
# A phrase of stop words says something where at most this share of the items has it.
MOST_SHARE = 0.05


@dataclass(frozen=True)
class Query:
    """typed: what the person wrote. is_typing: whether the last word may be unfinished."""

    typed: str
    models: StoredModels
    catalog: StoredCatalog
    lexicon: Lexicon
    is_typing: bool = False

    @cached_property
    def _parsed(self) -> ParsedQuery:
        return parsed(self.typed, self.catalog.catalog_columns.has)

    @property
    def clauses(self) -> list[Clause]:
        """Text and operators, in order."""
        return self._parsed.clauses

    # --- what must hold of an item ---

    @cached_property
    def conditions(self) -> Conditions:
        """What the operators demand of an item."""
        return Conditions.of(self.clauses, self.models, self.catalog)

    @cached_property
    def stop_words_mask(self) -> np.ndarray | None:
        """Of a text of stop words alone, bool (n_items,): the items that it is the title of, or
        else the beginning of the title, where it is several words, or else those that have it as a
        phrase, where they are few. None of any other text.
        """
        tokens = self.models.analyzer.tokens(self.text)
        if not tokens or not all(token.is_stop_word for token in tokens):
            return None
        typed, found = fold(" ".join(self.text.split())), np.zeros(self.models.n_items, dtype=bool)
        titles = list(self._titles_of([token.text for token in tokens]))
        same = [i for i, title in titles if title == typed]
        begun = [i for i, title in titles if title.startswith((f"{typed} ", f"{typed},"))]
        found[same or (begun if len(tokens) > 1 else [])] = True
        if found.any():
            return found
        phrase = Clause(self.text, "phrase")
        found = Conditions.of([phrase], self.models, self.catalog).leave(~found)
        return found if found.mean() <= MOST_SHARE else np.zeros_like(found)

    def _titles_of(self, words: list[str]) -> Iterator[tuple[int, str]]:
        """Row number and folded title of items whose title is a word, or begins with several."""
        index, columns = self.models.words, self.models.snapshot.facts["text_columns"]
        if columns[0] != "title":
            yield from ((i, fold(str(title))) for i, title in self.catalog.column("title"))
            return
        rows = np.flatnonzero(index.beginning_with(words, is_whole=len(words) == 1))
        _, titles = self.catalog.names(rows)
        yield from zip(rows.tolist(), map(fold, titles), strict=True)

    def leave(self, mask: np.ndarray, anyway: bool = False) -> np.ndarray:
        """What of `mask`, bool (n_items,), the query may rank; `anyway` stop words may rank all."""
        mask = self.conditions.leave(mask)
        return mask if anyway or self.stop_words_mask is None else mask & self.stop_words_mask

    # --- what is read ---

    @cached_property
    def text(self) -> str:
        """What heads read, typos mended: all but conditions on what search does not read."""
        return " ".join(text for text, _ in self._read[0])

    @property
    def changes(self) -> list[Change]:
        """The words that are read as others."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[tuple[str, Clause]], list[Change]]:
        """The text of each clause that is read, and what was changed in all of them."""
        pieces: list[tuple[str, Clause]] = []
        changes: list[Change] = []
        clauses = [clause for clause in self.clauses if self._is_read(clause)]
        for clause in clauses:
            found = []
            is_text = not clause.field and clause.kind != "phrase"
            if is_text and len(pieces) < MOST_LOOKED_UP:
                is_begun = clause.kind == "prefix" or (self.is_typing and clause is clauses[-1])
                found = list(self.lexicon.changes.of_text(clause.text, is_begun))
            pieces.append((with_changes(clause.text, found), clause))
            changes += [change for _, change in found]
        return pieces, changes

    def _is_read(self, clause: Clause) -> bool:
        if clause.excluded:
            return False
        searched = self.models.snapshot.facts["text_columns"]
        columns = self.catalog.catalog_columns
        return not clause.field or columns.find(clause.field).stored in searched

    # --- by words ---

    @cached_property
    def tokens(self) -> list[Token]:
        """The words that the lexical head looks for, stop words left out unless there are no
        others; of code that no item has, the bare words.
        """
        return resolve_code(
            self.models.analyzer.query_tokens(self.text), self.models.lexical_keys.has
        )

    @cached_property
    def words(self) -> list[QueryTerm]:
        """The same with all that each is looked up by."""
        found: list[QueryTerm] = []
        for token in self.tokens:
            word = self.lexicon.word(token) if len(found) < MOST_RELATED else QueryTerm.of(token)
            if token.text in self._begun_words:
                word = word.also(self._begun(token))
            if token.text in self._labels:
                label, boost = self._labels[token.text]
                word = word._replace(text=label, boost=boost)
            found.append(word)
        return [*found, *self.lexicon.synonyms.longer(self.text)]

    @cached_property
    def _begun_words(self) -> Mapping[str, str]:
        """What each word that may be unfinished was typed as, both folded."""
        found = {fold(c.read): fold(c.typed) for c in self.changes if c.kind == "prefix"}
        begun = [fold(clause.text) for clause in self.clauses if clause.kind == "prefix"]
        if self.is_typing and self.tokens:
            begun.append(self.tokens[-1].text)
        return {word: word for word in begun} | found

    def _begun(self, token: Token) -> Iterator[Expansion]:
        """The words that a word, or what it was completed from, is the beginning of."""
        begun = self._begun_words[token.text]
        is_last = self.is_typing and token.text == self.tokens[-1].text
        # What is no word yet may become each of them as well as the one that it is read as.
        weight = 1.0 if is_last and begun != token.text else COMPLETED
        expansion, _ = self.lexicon.expansion(begun)
        words = [w for w, _ in self._completions] if is_last else expansion
        for word in words:
            yield from (Expansion(t.term, word, weight) for t in self.models.analyzer.tokens(word))

    @cached_property
    def _completions(self) -> list[tuple[str, float]]:
        """What the last word may become while it is typed, with how likely each is."""
        if not self.is_typing or not self.tokens:
            return []
        return self.lexicon.changes.completions(self._last_begun)

    @property
    def _last_begun(self) -> str:
        last = self.tokens[-1].text
        return self._begun_words.get(last, last)

    @cached_property
    def _labels(self) -> Mapping[str, tuple[str, float]]:
        """Of each word, folded, that was changed or boosted: how reasons name it, and how many
        times it counts.
        """
        found: dict[str, tuple[str, float]] = {}
        tokens_of = self.models.analyzer.tokens
        for text, clause in self._read[0]:
            if clause.boost != 1:
                for token in tokens_of(text):
                    found[token.text] = (f"{token.text} ×{clause.boost:g}", clause.boost)
        for change in self.changes:
            for token in tokens_of(change.read):
                _, boost = found.get(token.text, ("", 1.0))
                found[token.text] = (change.label, boost * change.weight)
        return found

    @cached_property
    def codes(self) -> QueryCodes:
        """What of the text is an id or another code of an item."""
        return QueryCodes.of(self.text, self.models)

    # --- by meaning ---

    def parts(self, head: str) -> LabelledVectors:
        """The labelled vectors that are added up to the query of a dense head."""
        is_read = head == self.models.main_head and self._is_read_once
        found = self.reading.parts if is_read else self.models.encoder(head).encode(self.codes.rest)
        found = self._as_likely(found, head)
        if not self._labels:
            return found
        named = [self._named(label) for label in found.labels]
        boosts = np.array([boost for _, boost in named], dtype=found.vectors.dtype)
        vectors = found.vectors * boosts[:, None]
        # As long as without boosts: how near an item is does not depend on them.
        length = np.linalg.norm(vectors.sum(axis=0))
        scale = np.linalg.norm(found.total) / length if length > NEGLIGIBLE else 1.0
        return LabelledVectors([label for label, _ in named], vectors * vectors.dtype.type(scale))

    def _as_likely(self, found: LabelledVectors, head: str) -> LabelledVectors:
        """A word that is no word yet as the mean of what it may become, by how likely each is."""
        begun = self._unfinished
        if not begun:
            return found
        rows = [row for row, label in enumerate(found.labels) if fold(str(label)) in begun]
        if not rows:
            return found
        length = np.linalg.norm(found.vectors[rows].sum(axis=0))
        mean = self.lexicon.changes.meaning(self._last_begun, head)
        vectors = found.vectors.copy()
        vectors[rows] = 0
        vectors[rows[0]] = mean * (length / max(float(np.linalg.norm(mean)), NEGLIGIBLE))
        return LabelledVectors(found.labels, vectors)

    @property
    def n_unread(self) -> int:
        """How many words the main head's encoder did not read, the text being too long."""
        return self.reading.n_unread if self._is_read_once else 0

    @property
    def _is_read_once(self) -> bool:
        """Whether more than the main head's query comes of reading the text."""
        has_limit = self.models.encoder(self.models.main_head).limit is not None
        return has_limit or self.models.has_tokens

    @cached_property
    def reading(self) -> EncodedQuery:
        """What the main head's encoder makes of the text, each word as it comes."""
        return self.models.encoder(self.models.main_head).read(self.codes.rest)

    @property
    def late_labels(self) -> list[tuple[Any, float]]:
        """How reasons name each token of the main head's reading, and how many times it counts."""
        found, labels = [], self.reading.tokens.labels
        if not (self._labels or self._unfinished):
            return [(label, 1.0) for label in labels]
        for label in labels:
            name, boost = self._named(label)
            is_begun = fold(str(label)) in self._unfinished
            found.append((name, boost * self._completions[0][1] if is_begun else boost))
        return found

    @property
    def certainty(self) -> float:
        """How sure it is, from 0 to 1, that the words are those that are read, where the last one
        is being typed: what they mean counts as much.
        """
        if not self._unfinished:
            return 1.0
        return 1 - (1 - self._completions[0][1]) / len(self.tokens)

    @cached_property
    def _unfinished(self) -> set[str]:
        """What the last word is read as while it is typed and is no word yet, folded."""
        may_be_others = len(self._completions) > 1
        read = {fold(c.read) for c in self.changes if c.kind == "prefix"}
        return read & {self.tokens[-1].text} if may_be_others else set()

    def _named(self, label: Any) -> tuple[Any, float]:
        return self._labels.get(fold(str(label)), (label, 1.0))

    # --- what is said ---

    @property
    def notes(self) -> list[str]:
        """What was changed, and what no item has."""
        stopped = self.stop_words_mask is not None and not self.stop_words_mask.any()
        changed = [change.note for change in self.changes if change.note]
        missing = [f"No text has “{word}”." for word in self._missing]
        said = [*self.conditions.notes, *self._suggestions]
        return [*changed, *missing, *[STOP_WORDS_ALONE] * stopped, *said, *self._cut]

    @property
    def _cut(self) -> Iterator[str]:
        """What of the query is more than is looked up."""
        if n := self._parsed.n_ignored:
            yield f"Only the first {MAX_OPERATORS} operators count; {n:,} more were left out."
        for clause in self.clauses:
            if clause.kind == "prefix" and self._is_read(clause):
                _, n_words = self.lexicon.expansion(fold(clause.text))
                if n_words > MAX_EXPANSION:
                    yield (
                        f"{n_words:,} words begin with “{clause.text}”; "
                        f"the {MAX_EXPANSION} most frequent ones rank the hits."
                    )

    @property
    def _suggestions(self) -> Iterator[str]:
        """What may be meant by a condition that holds of nothing, by a column that is not there,
        and by a number that another column has.
        """
        columns = self.catalog.catalog_columns
        for clause in self.clauses:
            if clause.is_condition and not clause.excluded and self.conditions.notes:
                found = list(self.lexicon.changes.of_text(clause.text, False))
                if found:
                    yield f"Did you mean {replace(clause, text=with_changes(clause.text, found))}?"
        typed = dict.fromkeys(FIELD_TYPED.findall(self.typed)) if ":" in self.typed else {}
        for name, word in islice(typed, MAX_FIELD_NAMES):
            from difflib import get_close_matches

            pause()
            if not columns.has(name) and (near := get_close_matches(name, columns.names, 1)):
                yield f"There is no column “{name}”. Did you mean {near[0]}:{word}?"
        for word in filter(str.isdecimal, self._missing or [t.text for t in self.tokens[:1]]):
            for column in columns:
                if column.type == "number" and self._has_cell(column.stored, word):
                    yield f"Did you mean {column.name}:{word}?"

    def _has_cell(self, column: str, word: str) -> bool:
        if self.models.lexical_keys.has(word) or len(word) > MOST_DIGITS:
            return False
        return int(word) in self.catalog.column_cells(column).distinct

    @cached_property
    def _missing(self) -> list[str]:
        """Of a few words those that no text has, unless it has none of them."""
        typed = {token.text: token for token in self.tokens}
        if len(typed) > MOST_TOLD:
            return []
        keys = self.models.lexical_keys
        told = {fold(token.text) for token in self.codes.tokens}
        told |= {fold(word) for clause in self.clauses if clause.is_condition
                 for word in clause.text.split()}  # fmt: skip
        missing = [
            text
            for text, token in typed.items()
            if not keys.has(token.term) and not HAS_CJK(text) and text not in told
        ]
        return missing if len(missing) < len(typed) else []

    @property
    def corrections(self) -> list[dict[str, Any]]:
        """The changes, as an answer lists them."""
        return [change.to_record() for change in self.changes]
