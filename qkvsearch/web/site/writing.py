"""A site to a folder, which is there as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from qkvsearch.answers.opened import OpenedBuild
from qkvsearch.errors import DataError, QkvError, suggest
from qkvsearch.files import folder_beside
from qkvsearch.lessons.messages import LANGUAGES, language
from qkvsearch.progress import Progress, silent
from qkvsearch.web.site.contents import MADE_BY, SiteContents, site_json
from qkvsearch.web.site.pages import site_pages

FACTS = "site.json"


class ExportedSite(NamedTuple):
    """n_items: how many it searches. n_files, n_bytes: what was written. first: the bytes that are
    read before any hit, without those of the query's own words. notes: what is to be said of it.
    """

    n_items: int
    n_files: int
    n_bytes: int
    first: int
    notes: list[str]


def export_site(
    build: OpenedBuild,
    path: str | Path,
    *,
    title: str = "qkvsearch",
    spoken: str = "en",
    fields: str | Iterable[str] = (),
    progress: Progress | None = None,
) -> ExportedSite:
    """Write search and the course of a build's catalog as files that any host serves.

    spoken: the language of the pages, "en" or "zh". fields: columns to be shown with each hit. A
    folder takes the place of an empty one, or of one that this wrote. Raises `QkvError` for another
    folder, for more than 20,000 items, and for columns that are not there.

    >>> import qkvsearch, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> engine = qkvsearch.build(folder / "ws", "sample:videos", encoder="corpus")
    >>> export_site(engine.build, folder / "site", title="Videos").n_items
    375
    """
    target = Path(path).absolute()
    if spoken not in LANGUAGES:
        near = suggest(spoken, list(LANGUAGES))
        raise QkvError(f"`spoken` is {' or '.join(LANGUAGES)}, not {spoken!r}{near}")
    check_folder(target)
    contents = SiteContents(build, fields, progress or silent)
    with language(spoken):
        pages = site_pages(title)
    files = {**contents.files, **pages, FACTS: site_json(contents)}
    _write(target, files)
    first = sum(len(files[name]) for name in files if is_read_first(name))
    total = sum(map(len, files.values()))
    return ExportedSite(build.n_items, len(files), total, first, contents.notes)


def is_read_first(name: str) -> bool:
    """Whether a file of a site is read before anything is typed, in whatever page of search."""
    return name != "course.html" and ("/" not in name or "/words/" in name)


def check_folder(target: Path) -> None:
    """Raise `DataError` for what is there and is neither empty nor a site."""
    with suppress(OSError, ValueError):
        facts = json.loads((target / FACTS).read_bytes())
        if isinstance(facts, dict) and facts.get("made_by") == MADE_BY:
            return
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise DataError(
            f"{target}: it is there and no site that was exported; name a new or an empty folder"
        )


def _write(target: Path, files: dict[str, bytes]) -> None:
    with folder_beside(target) as beside:
        made, former = beside / "site", beside / "former"
        try:
            for name, content in files.items():
                file = made / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            # What was written meanwhile is no site, and stays.
            check_folder(target)
            if target.exists():
                target.rename(former)
            made.rename(target)
        except OSError as error:
            if former.exists() and not target.exists():
                former.rename(target)
            raise DataError(f"{target}: cannot write: {error.strerror or error}") from None
