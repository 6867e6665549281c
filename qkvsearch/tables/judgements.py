"""Queries, and judgements of which items answer them: the files that search is evaluated with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from qkvsearch._utils.limits import LINES
from qkvsearch._utils.validation import check_names, check_path, check_text, displayed
from qkvsearch.errors import DataError, suggest
from qkvsearch.tables.ids import id_text

# Query id to its text; query id to the grade of each judged item.
Queries = dict[str, str]
Judgements = dict[str, dict[str, int]]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_queries(path: str | Path) -> Queries:
    """Read lines of `id<TAB>text`, without a header or quoting.

    Raises `DataError` that names the file and the line, also for an id with two texts.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "queries.tsv")
    >>> _ = path.write_text('q1\\tthe "red" planet\\n')
    >>> read_queries(path)
    {'q1': 'the "red" planet'}
    """
    return _with_ids(path, numbered_lines(path))


def _with_ids(path: str | Path, lines: Iterable[tuple[int, str]]) -> Queries:
    """Return the queries of numbered lines of `id<TAB>text`, as `read_queries` does."""
    queries: Queries = {}
    for number, line in lines:
        name, tab, text = line.partition("\t")
        if not (tab and id_text(name) and text.strip()):
            raise DataError(f"{path}, line {number}: expected id<TAB>text, found {line[:60]!r}")
        if queries.setdefault(id_text(name), text.strip()) != text.strip():
            raise DataError(f"{path}, line {number}: query {name} has another text above: keep one")
    if not queries:
        raise DataError(f"{path}: no queries here; write one a line: id<TAB>text")
    return queries


def read_texts(path: str | Path) -> Queries:
    """Read queries, one a line: lines of `id<TAB>text`, or lines of text alone, whose ids are then
    the numbers of the lines.

    Raises `DataError` that names the file and the line.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "queries.txt")
    >>> _ = path.write_text("red planet\\n\\nblue moon\\n")
    >>> read_texts(path)
    {'1': 'red planet', '3': 'blue moon'}
    """
    lines = list(numbered_lines(path))
    if any("\t" in line for _, line in lines):
        return _with_ids(path, lines)
    if not lines:
        raise DataError(f"{path}: no queries here; write one a line: text, or id<TAB>text")
    return {str(number): line.strip() for number, line in lines}


def read_judgements(path: str | Path) -> Judgements:
    """Read lines of `query iteration item grade` (TREC), `query item grade`, or `query item`,
    whose grade is 1.

    Tabs separate columns if a line has one, so that ids may have spaces; otherwise any space does.
    Grades are whole numbers, relevant from 1 up. Raises `DataError` that names the file and the
    line, also for a pair with two grades.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "qrels.txt")
    >>> _ = path.write_text("q1 0 v7 2\\nq1\\tv8\\n")
    >>> read_judgements(path)
    {'q1': {'v7': 2, 'v8': 1}}
    """
    judgements: Judgements = {}
    for number, line in numbered_lines(path):
        cells = [id_text(cell) for cell in line.strip().split("\t" if "\t" in line else None)]
        if not 2 <= len(cells) <= 4 or "" in cells:
            raise DataError(
                f"{path}, line {number}: expected query, iteration, item and grade, or "
                f"query<TAB>item<TAB>grade, found {line[:60]!r}"
            )
        query, item = cells[0], cells[1] if len(cells) < 4 else cells[2]
        grade = _grade(cells[-1], f"{path}, line {number}") if len(cells) > 2 else 1
        judged = judgements.setdefault(query, {})
        if judged.setdefault(item, grade) != grade:
            raise DataError(
                f"{path}, line {number}: query {query} and item {item} have the grade "
                f"{judged[item]} above, and {grade} here: keep one"
            )
    if not judgements:
        raise DataError(f"{path}: no judgements here; write one a line: query<TAB>item<TAB>grade")
    return judgements


def _grade(text: str, where: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,6}", text):
        raise DataError(
            f"{where}: {text[:20]!r} is no grade: give a whole number, and no header line"
        )
    return int(text)


def as_queries(queries: str | Path | Queries | Sequence[str]) -> Queries:
    """Return the texts of queries by their ids: of a file, of a mapping, or of texts, which are
    numbered from 1. Raises `DataError`.
    """
    if isinstance(queries, Mapping):
        texts = {id_text(query): check_text("queries", text) for query, text in queries.items()}
    elif isinstance(queries, str | Path):
        check_path("queries", queries)
        texts = read_texts(queries)
    else:
        texts = {str(n): text for n, text in enumerate(check_names("queries", queries), 1)}
    if not texts:
        raise DataError("`queries`: there are none")
    return texts


def judged_by(
    queries: str | Path | Queries, qrels: str | Path | Judgements
) -> tuple[Queries, Judgements]:
    """Return queries and judgements, of files or mappings, with ids as text. Raises `DataError`."""
    if queries is None or qrels is None:
        raise DataError("both `queries` and `qrels` are needed")
    expected = "a file, or a mapping from the ids of queries"
    if isinstance(queries, Mapping):
        texts = dict(queries)
    else:
        check_path("queries", queries, expected)
        texts = read_queries(queries)
    if isinstance(qrels, Mapping):
        grades = dict(qrels)
    else:
        check_path("qrels", qrels, expected)
        grades = read_judgements(qrels)
    for query, judged in grades.items():
        if not isinstance(judged, Mapping):
            raise DataError(
                f"`qrels`: query {id_text(query)!r} needs a mapping from items to grades, not "
                f"{displayed(judged)}"
            )
    return (
        {id_text(query): text for query, text in texts.items()},
        {
            id_text(query): {id_text(item): grade for item, grade in judged.items()}
            for query, judged in grades.items()
        },
    )


def check_queries(judgements: Judgements, queries: Queries) -> None:
    """Raise `DataError` where a judgement names an unknown query."""
    for query in judgements:
        if query not in queries:
            near = suggest(query, list(queries))
            raise DataError(f"judgements name query {query!r}, which has no text{near}")


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield lines that are not blank, without their ends, with their numbers."""
    try:
        with Path(path).open("rb") as file:  # a device or a pipe may never end
            content = file.read(LINES.value + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot read: {error.strerror or error}") from None
    LINES.check(len(content), str(path))
    # Only line feeds end a line: splitlines would also split at rarer separators inside a text.
    for number, line in enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not text in UTF-8; save it as UTF-8") from None
        if text.strip():
            yield number, text
