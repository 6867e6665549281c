"""The files of documents: which files of a folder or a pattern are documents, and their ids."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qkvsearch._utils.files import is_of_a_workspace
from qkvsearch.errors import DataError, listed_names, quantity
from qkvsearch.tables.documents.document import DocumentFormat
from qkvsearch.tables.documents.markdown_files import MARKDOWN
from qkvsearch.tables.documents.plain_text_files import PLAIN_TEXT
from qkvsearch.tables.documents.subtitles import SUBTITLES
from qkvsearch.tables.documents.web_pages import PAGES
from qkvsearch.tables.files.unpacking import ADDRESS, matching

DOCUMENT_FORMATS = (SUBTITLES, MARKDOWN, PAGES, PLAIN_TEXT)
FORMAT_OF = {suffix: each for each in DOCUMENT_FORMATS for suffix in each.suffixes}
# Files with many items, which a folder may have beside its documents.
TABLES = frozenset(
    ".csv .tsv .tab .json .jsonl .ndjson .parquet .xlsx .xls .ods .db .sqlite .sqlite3 .dat .data "
    ".item".split()
)
DELIMITER = re.compile(rb"[,;\t|]")


@dataclass(frozen=True)
class DocumentFiles:
    """Files of documents, each one item.

    label: what messages call them. folders: for each file, the folder that was named, in which it
    is. left_out: other files. notes: for the report.
    """

    label: str
    paths: tuple[Path, ...]
    folders: tuple[Path, ...]
    left_out: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of_all(cls, groups: Sequence[DocumentFiles]) -> DocumentFiles:
        """Join groups, so that no two of their files have the same id."""
        label = groups[0].label
        if len(groups) > 1:
            label += f" and {len(groups) - 1} more"
        paths = tuple(path for group in groups for path in group.paths)
        folders = tuple(folder for group in groups for folder in group.folders)
        left_out = tuple(path for group in groups for path in group.left_out)
        notes = tuple(note for group in groups for note in group.notes)
        return cls(label, paths, folders, left_out, notes)

    def ids(self) -> list[str]:
        """Return the id of each file: its name without its suffix, with it where two would be the
        same, and with its path in the folder that was named where they still are.
        """
        stems = [stem(path) for path in self.paths]
        names = [_text(path.name) for path in self.paths]
        in_folders = [
            _path_in(folder, path) for folder, path in zip(self.folders, self.paths, strict=True)
        ]
        # Two folders that were named may have files of the same path in them.
        of_all = Path(os.path.commonpath([path.parent.absolute() for path in self.paths]))
        paths = [_path_in(of_all, path) for path in self.paths]
        ids = stems
        for longer in (names, in_folders, paths):
            count = Counter(ids)
            ids = [
                id_ if count[id_] == 1 else other for id_, other in zip(ids, longer, strict=True)
            ]
        return ids

    def possible_ids(self) -> list[tuple[str, ...]]:
        """Return the ids that each file may have, by the files beside it and the folder that was
        named: its name without its suffix, and each end of its path, the shortest first.
        """
        return [(stem(path), *_ends(_text(path.absolute().as_posix()))) for path in self.paths]


def _path_in(folder: Path, path: Path) -> str:
    return _text(path.absolute().relative_to(folder.absolute()).as_posix())


def _ends(path: str) -> list[str]:
    """Return the ends of a path from the name of the file on.

    >>> _ends("/talks/2023/a.md")
    ['a.md', '2023/a.md', 'talks/2023/a.md']
    """
    parts = path.strip("/").split("/")
    return ["/".join(parts[first:]) for first in range(len(parts) - 1, -1, -1)]


def format_of(path: Path) -> DocumentFormat | None:
    """Return the format of a document by the suffix of its name, or None."""
    return FORMAT_OF.get(_without_packing(path).suffix.lower())


def stem(path: Path) -> str:
    """Return the name of a file without its suffix.

    >>> stem(Path("talks/ferries.en.vtt")), stem(Path("talks/ferries.srt.gz"))
    ('ferries.en', 'ferries')
    """
    return _text(_without_packing(path).stem)


def documents_of(source: str | Path) -> DocumentFiles | None:
    """Return the documents that a folder, a pattern or the name of a file means, or None where it
    means tables. Raises `DataError` for a folder without documents.
    """
    path = Path(source)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):  # too long for a path, such as a query
        return None
    if is_folder:
        return _in_folder(str(source), path)
    if exists:
        format_ = format_of(path)
        is_document = format_ is not None and format_ is not PLAIN_TEXT
        return DocumentFiles(str(source), (path,), (path.parent,)) if is_document else None
    if ADDRESS.match(str(source)) or not glob.has_magic(str(source)) or "#" in str(source):
        return None
    return _chosen(str(source), map(Path, matching(source)), _folder_of_pattern(str(source)))


def _folder_of_pattern(pattern: str) -> Path:
    """Return the folder of a pattern in which no name has a sign such as *.

    >>> _folder_of_pattern("talks/20*/*.md").as_posix()
    'talks'
    """
    parents = Path(pattern).parents
    return next(parent for parent in parents if not glob.has_magic(str(parent)))


def _in_folder(label: str, folder: Path) -> DocumentFiles:
    """Return the documents of a folder and the folders in it. The files of a workspace that is
    in it are no documents.
    """
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:], names = (
            sorted(name for name in entries if _is_looked_at(Path(parent, name)))
            for entries in (folders, names)
        )
        found += [Path(parent, name) for name in names]
    files = [path for path in found if path.is_file()]
    documents = _chosen(label, files, folder)
    if documents is not None:
        return documents
    tables = [path for path in files if path.suffix.lower() in {*TABLES, ".txt"}]
    if tables:
        raise DataError(
            f"{label}: a folder of tables ({listed_names([path.name for path in tables])}): name "
            f"them, or write a pattern in quotes, such as '{tables[0].parent}/*{tables[0].suffix}'"
        )
    raise DataError(f"{label}: no file in this folder is read (read: {', '.join(FORMAT_OF)})")


def _is_looked_at(path: Path) -> bool:
    return not path.name.startswith(".") and not is_of_a_workspace(path.absolute())


def _chosen(label: str, files: Iterable[Path], folder: Path) -> DocumentFiles | None:
    """Return those files of a folder that are documents; None where they are rather tables."""
    files = list(files)
    plain = [path for path in files if format_of(path) is PLAIN_TEXT]
    are_tables = _are_tables(plain)
    documents = [path for path in files if format_of(path) and not (are_tables and path in plain)]
    left_out = [path for path in files if path not in set(documents)]
    n_tables = sum(path.suffix.lower() in TABLES for path in left_out) + are_tables * len(plain)
    has_subtitles = any(format_of(path) is SUBTITLES for path in documents)
    # A page or a text beside tables describes them. Programs write JSON beside subtitles.
    if not documents or (n_tables > len(documents) and not has_subtitles):
        return None
    folders = (folder,) * len(documents)
    return DocumentFiles(label, tuple(documents), folders, tuple(left_out))


def _are_tables(paths: Sequence[Path]) -> bool:
    """Return whether files of text are tables: several begin with the same line of names."""
    if len(paths) < 2:
        return False
    first = _first_line(paths[0])
    return bool(DELIMITER.search(first)) and all(_first_line(path) == first for path in paths[1:])


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(4096).strip()
    except OSError:
        return b""


def _without_packing(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _text(name: str) -> str:
    """Return a name of a file as text in composed letters; bytes that are no text as numbers."""
    return unicodedata.normalize("NFC", name.encode(errors="backslashreplace").decode())


def left_out_note(files: Sequence[Path]) -> str:
    """Return a note on files that are no documents, or ""."""
    if not files:
        return ""
    names = listed_names([_text(path.name) for path in files], 3)
    return f"{quantity(len(files), 'other file')} left out: {names}"
