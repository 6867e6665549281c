"""Fuzzy titles: items by a title without its year or article, and near matches of a wrong one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeAlias

Found: TypeAlias = Callable[..., Iterator[tuple[Any, ...]]]

ARTICLES = "The|A|An|Le|La|Les|El|Los|Las|Der|Die|Das|Il|Un|Une"
FIRST_ARTICLE = re.compile(rf"^({ARTICLES})\s+(?=\S)", re.IGNORECASE)
# A wrong title is compared with at most this many, those that share a word with it first.
MAX_COMPARED = 20_000
MAX_SHOWN = 3


def as_form(name: str) -> tuple[str, str]:
    """How a name of an item is to be read, "id", "title" or "" for either; and what is named.

    >>> as_form("id:300"), as_form("Title: Heat"), as_form("Alien: Covenant")
    (('id', '300'), ('title', 'Heat'), ('', 'Alien: Covenant'))
    """
    form, _, named = name.partition(":")
    form, named = form.strip().casefold(), named.strip()
    return (form, named) if form in ("id", "title") and named else ("", name)


def title_key(title: str) -> str:
    """A title without case, without the year or other brackets at its end, and without its article.

    >>> title_key("Matrix, The (1999)") == title_key("the matrix")
    True
    """
    bare = title.strip()
    if bare.endswith(")"):
        bare = re.sub(r"(?<=\S)(\s*\([^()]*\))+$", "", bare)
    if ", " in bare:
        bare = re.sub(rf"^(.*), ({ARTICLES})$", r"\2 \1", bare, flags=re.IGNORECASE)
    return FIRST_ARTICLE.sub("", bare).casefold()


def near_titles(titles: Found, ids: Found, wanted: str) -> list[str]:
    """Ids that `wanted` is but for zeros before it, titles that contain it, then titles and ids
    that are spelled much like it.

    titles, ids: for a condition (SQL) and its values, the (key, title) or the (id,) of the items
    for which it holds, in the order of their ids.
    """
    key = title_key(wanted)
    words = [f"%{word}%" for word in re.findall(r"\w{3,50}", key)[:20]]
    sharing = " OR ".join(["key LIKE ?"] * len(words)) or "0"
    containing = list(islice(titles("instr(key, ?)", key), MAX_SHOWN))
    rows = [
        *containing,
        *islice(titles(sharing, *words), MAX_COMPARED),
        *islice(titles("1"), MAX_COMPARED),
    ]
    padded = islice(ids("ltrim(id, '0') = ?", wanted.lstrip("0")), MAX_SHOWN)
    named = {str(name): str(name) for (name,) in islice(ids("1"), MAX_COMPARED)}
    named |= {key: str(title) for key, title in rows}
    close = [named[name] for name in get_close_matches(key, named, n=MAX_SHOWN, cutoff=0.6)]
    first = [
        *(str(id_) for (id_,) in padded if wanted),
        *(str(title) for _, title in containing if key),
    ]
    return list(dict.fromkeys([*first, *close]))[:MAX_SHOWN]
