"""How pages display a column: as a length of time, an amount of money, an image, or a link."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_facts import CELL_WORDS, CURRENCY_SYMBOLS, PRICES
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.columns import words_of
from qkvsearch.tables.columns.units import unit_name

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600}
SHORT = {"sec": "seconds", "secs": "seconds", "s": "seconds", "min": "minutes", "mins": "minutes"}
SHORT |= {"h": "hours", "hour": "hours"}
LENGTHS = set("duration length runtime dauer laufzeit lange duree duracion durata duracao".split())
CODES, IS_SIGN = frozenset(CELL_WORDS["currencies"]), re.compile(f"[{CURRENCY_SYMBOLS}]")
# Signs that one currency alone has. "$" and "¥" are of several, and are shown as they are.
CODE_OF_SIGN = {"€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₪": "ILS"}
# Full-width signs, as columns' names have them; those of cells are read as the usual ones.
CODE_OF_SIGN |= {"￡": "GBP", "￦": "KRW", "￥": "¥", "＄": "$"}
# Of the filled cells, at least this share is of one kind.
MIN_SHARE = 0.95
# The items of the sample that is read first, and the most characters of an address.
SAMPLE_SIZE, MAX_ADDRESS = 200, 2000
IMAGES = set(
    "image images img picture photo thumbnail poster cover bild foto imagen immagine 图片".split()
)
IMAGE_FILE = re.compile(r"\.(avif|gif|jpe?g|png|svg|webp)", re.IGNORECASE)


def unit_of(catalog: StoredCatalog, column: StoredColumn) -> str:
    """Return the unit of a column of numbers: "seconds", "minutes" or "hours" by its name or its
    cells, the currency that its name says or nearly all of its cells had, as a code or a sign, or
    the unit of its cells as the file writes it; otherwise "".
    """
    if type_named(column.type).shown_as != "number":
        return ""
    facts = {fact.get("stored") or fact["name"]: fact for fact in catalog.facts.get("columns", ())}
    fact = facts.get(column.stored, {})
    n_filled = round((1 - fact.get("empty", 0.0)) * len(catalog.rows))
    named = _duration(column.name) or _currency(column.name, fact.get("changed", {}), n_filled)
    return named or SHORT.get(unit_name(column.unit), column.unit)


def _duration(name: str) -> str:
    words = words_of(name)
    if words[-1:] and words[-1] in SECONDS and set(words[:-1]) <= LENGTHS:
        return words[-1]
    return SHORT.get(words[-1], "") if LENGTHS & set(words[:-1]) else ""


def _currency(name: str, changed: Mapping[str, int], n_filled: int) -> str:
    """Return the one currency of a column's name and cells, or "" for none or several.

    >>> _currency("Price (EUR)", {}, 3), _currency("Preis", {"€ removed": 3}, 3)
    ('EUR', 'EUR')
    >>> _currency("price", {"$ removed": 2, "€ removed": 1}, 3), _currency("all", {}, 3)
    ('', '')
    """
    cells: dict[str, int] = {}
    for what, n in changed.items():
        sign = what.removesuffix(" removed").upper()
        if sign != what.upper() and (sign in CODES or IS_SIGN.fullmatch(sign[-1:])):
            code = CODE_OF_SIGN.get(sign, sign)
            cells[code] = cells.get(code, 0) + n
    words = words_of(name)
    named = {CODE_OF_SIGN.get(sign, sign) for sign in IS_SIGN.findall(name)}
    if PRICES & set(words):
        named |= {word.upper() for word in words} & CODES
    currencies = named | set(cells)
    if len(currencies) != 1:
        return ""
    return next(iter(currencies)) if named or sum(cells.values()) >= MIN_SHARE * n_filled else ""


def price_column(catalog: StoredCatalog) -> str | None:
    """Return the column of numbers with the price of an item: the one that is called so by the most
    usual word, otherwise the first one with a currency; None where there is none.
    """
    numbers = [c for c in catalog.catalog_columns if type_named(c.type).shown_as == "number"]
    named = [column for column in numbers if _price_rank(column.name) is not None]
    if named:
        return min(named, key=lambda column: _price_rank(column.name) or 0).name
    for column in numbers:
        unit = unit_of(catalog, column)
        if unit in CODES or IS_SIGN.search(unit):
            return column.name
    return None


def _price_rank(name: str) -> int | None:
    """Return how usual the word for a price in a column's name is, 0 for the most usual; None for a
    name without one. Chinese words have no spaces around them.

    >>> _price_rank("Price (EUR)"), _price_rank("title"), _price_rank("商品价格") is None
    (0, None, False)
    """
    for word in words_of(name):
        for rank, price in enumerate(CELL_WORDS["prices"]):
            if word == price or (not price.isascii() and word.endswith(price)):
                return rank
    return None


def address_columns(catalog: StoredCatalog) -> list[dict[str, Any]]:
    """Return the columns of web addresses, as far as a sample tells: `name`, what a page needs to
    know of the type, and `display`, "image" or "link". Only the first one of images is returned.
    """
    n_items = len(catalog.rows)
    rows = np.unique(np.linspace(0, n_items - 1, min(n_items, SAMPLE_SIZE)).astype(np.int64))
    texts = [c for c in catalog.catalog_columns if c.type == "text" and c.stored != "id"]
    cells = catalog.cells(rows, [column.stored for column in texts])
    displayed: list[dict[str, Any]] = []
    for index, column in enumerate(texts):
        filled = [str(row[index]) for row in cells if row[index] not in (None, "")]
        n_filled, filled = len(filled), list(filter(_is_address, filled))
        if not filled or len(filled) < MIN_SHARE * n_filled:
            continue
        is_image = bool(IMAGES & set(words_of(column.name))) or all(map(_is_image, filled))
        display = "image" if is_image else "link"
        if not is_image or all(other["display"] != display for other in displayed):
            facts = type_named(column.type).for_pages()
            displayed.append({"name": column.name, **facts, "display": display})
    return displayed


def _is_address(cell: str) -> bool:
    """Return whether a cell is the address of a page or an image, and no other scheme's."""
    return len(cell) <= MAX_ADDRESS and re.match(r"https?://[^\s/]+\S*$", cell) is not None


def _is_image(cell: str) -> bool:
    return IMAGE_FILE.search(urlsplit(cell).path) is not None
