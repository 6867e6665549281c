"""Cells of ratings to numbers: numbers, yes and no, 4/5, and stars."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.folding import fold
from qkvsearch.errors import DataError
from qkvsearch.tables.column_facts import are_missing, no_words, yes_words
from qkvsearch.tables.columns.log_words import LOG_WORDS

LIKES = yes_words() | frozenset(map(fold, LOG_WORDS["likes"]))
DISLIKES = no_words() | frozenset(map(fold, LOG_WORDS["dislikes"]))
# 4/5, 7 out of 10, 3,5 von 5 Sternen, 4 stars; ★★★½☆.
STAR_WORDS = (
    r"-?(?:stars?|sterne?n?|étoiles?|estrell?as?|stell[ae]|gwiazd\w*|звезд\w*|つ?星|颗?星|⭐|★)"
)
OUT_OF = re.compile(
    rf"(\d+(?:[.,]\d+)?)\s*(?:(?:/|out of|of|von|sur|de|su|из)\s*(\d+))?\s*({STAR_WORDS})?",
    re.IGNORECASE,
)
STARS = re.compile(r"([★⭐*]\ufe0f?\s*)*(½\s*)?(☆\s*)*")
ANSWERS, STARS_READ = "yes and no to 1 and 0", "read as n of m"


class RatingCells(NamedTuple):
    """The distinct cells of a column of ratings (m,) as numbers: NaN without a rating, ∞ for a text
    that is none. scale: where the cells tell it. change: how they were changed; "" for numbers.
    """

    values: np.ndarray
    scale: tuple[float, float] | None = None
    change: str = ""


def read_ratings(texts: pd.Series, counts: np.ndarray, name: str, file: str) -> RatingCells:
    """Read the distinct texts of a column as what most of its cells are: yes and no, n/m, stars, or
    numbers, which are left to the caller. Raises `DataError` for ratings out of several numbers.

    >>> read_ratings(pd.Series(["5/5", "2/5"]), np.ones(2), "rating", "log.csv")[:2]
    (array([5., 2.]), (1.0, 5.0))
    """
    words = texts.str.strip().str.normalize("NFC").str.casefold()
    answers = texts.str.strip().map(fold)
    missing = are_missing(texts) & ~(words.eq("-") & words.eq("+").any()).to_numpy(bool)
    half = counts[~missing].sum() / 2
    likes = answers.isin(LIKES).to_numpy(bool)
    dislikes = answers.isin(DISLIKES).to_numpy(bool)
    numeric = words.str.fullmatch(r"[\d.,]+").to_numpy(bool)
    n_worded = counts[(likes | dislikes) & ~missing & ~numeric].sum()
    if n_worded > half or (n_worded and (likes | dislikes | missing).all()):
        values = np.where(likes, 1.0, np.where(dislikes, 0.0, np.inf))
        return RatingCells(np.where(missing, np.nan, values), (0.0, 1.0), ANSWERS)
    read = [out_of(text) for text in words]
    are_read = np.array([each is not None for each in read], dtype=bool) & ~missing
    tops = {each[1] for each in read if each and each[1]}
    if counts[are_read & ~numeric].sum() <= half:
        return RatingCells(np.full(len(texts), np.nan))
    if len(tops) > 1:
        listed = " and ".join(f"{top:g}" for top in sorted(tops)[:2])
        raise DataError(
            f"{file}: column {name} has ratings out of {listed}: write all out of the same number"
        )
    values = np.array([each[0] if each else np.inf for each in read], np.float64)
    values[missing] = np.nan
    scale = None
    if tops:
        lowest = float(np.nanmin(values))
        scale = (1.0 if lowest >= 1 else 0.0, tops.pop())
        values[np.isfinite(values) & (values > scale[1])] = np.inf
    return RatingCells(values, scale, STARS_READ)


def out_of(text: str) -> tuple[float, float | None] | None:
    """Return a rating and the highest possible one, None where the text does not tell it; None for
    another text.

    >>> out_of("3,5 von 5 sternen"), out_of("★★★½☆"), out_of("4 stars"), out_of("good")
    ((3.5, 5.0), (3.5, 5.0), (4.0, None), None)
    """
    if text and STARS.fullmatch(text):
        n_white = text.count("☆")
        n_full = len(re.findall("[★⭐*]", text)) + 0.5 * text.count("½")
        return n_full, float(math.ceil(n_full) + n_white) if n_white else None
    match = OUT_OF.fullmatch(text)
    if match is None:
        return None
    return float(match[1].replace(",", ".")), float(match[2]) if match[2] else None
