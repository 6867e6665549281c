"""A `.txt` file that is named itself: one document, or a table."""

from __future__ import annotations

import re
from pathlib import Path

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import folded
from qkvsearch.tables.documents.document_files import DocumentFiles, format_of
from qkvsearch.tables.documents.plain_text_files import PLAIN_TEXT
from qkvsearch.tables.files.delimited import COLUMN_NAMES, DELIMITERS, SAMPLE, find_layout
from qkvsearch.tables.files.encodings import open_text
from qkvsearch.tables.files.file_format import TextOptions
from qkvsearch.tables.files.json_rows import JSON
from qkvsearch.tables.files.kinds import refuse_other_kinds
from qkvsearch.tables.files.unpacking import unpacked

# Between names of columns: in a sentence a blank is behind such a sign, or digits around it.
BETWEEN_NAMES = re.compile(r"\t|[,;|](?=\S)(?!(?<=\d.)\d)")

# How sentences end, and headers do not.
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


def lone_text(source: str | Path, encoding: str | None = None) -> DocumentFiles | None:
    """Return a `.txt` file as a document, None for any other source and for a table."""
    path = Path(source)
    try:
        is_text = format_of(path) is PLAIN_TEXT and path.is_file()
    except (OSError, ValueError):  # too long for a path
        return None
    if not is_text or _is_table(path, encoding):
        return None
    note = f"{path.name} is one document; if it is a table, name a column, such as `title_column`"
    return DocumentFiles(str(source), (path,), (path.parent,), notes=(note,))


def _is_table(path: Path, encoding: str | None) -> bool:
    """Return whether a file is a table, or is not readable as a text."""
    try:
        with unpacked(path) as file:
            start = file.start()
            refuse_other_kinds(start, file.label)
            with open_text(file.path, start, encoding).text as text:
                if JSON.fits(file, text, TextOptions()):
                    return True
                return has_columns(text.read(SAMPLE))
    except (DataError, OSError, UnicodeError):  # whoever reads the table says what is wrong
        return True


def has_columns(sample: str) -> bool:
    """Return whether the beginning of a text is that of a table: its header has a usual name of a
    column, or a delimiter without a blank behind it that most lines below have as well, and it does
    not end as a sentence. A text without letters is a table as well.

    >>> has_columns("id, year\\n7, 1999\\n"), has_columns("sku;price\\n7;1,50\\n")
    (True, True)
    >>> has_columns("The boat left, and\\nthen, at noon, it came back.\\n")
    False
    >>> has_columns("We sold 1,000 boats.\\n"), has_columns("Buy milk,eggs\\nGo home\\n")
    (False, False)
    """
    layout = find_layout(sample)
    if layout is None or not re.search(r"[^\W\d_]", sample):
        return True
    lines = sample.removeprefix("".join(layout.above)).splitlines()
    header, *below = [line for line in lines if line.strip()]
    names = re.split(f"[{re.escape(DELIMITERS)}]", header)
    if any(folded(name) in COLUMN_NAMES for name in names):
        return True
    if header.rstrip().endswith(SENTENCE_ENDS) or not BETWEEN_NAMES.search(header):
        return False
    n_divided = sum(layout.delimiter in line for line in below)
    return 2 * n_divided > len(below)
