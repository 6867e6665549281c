"""The languages that the course and the pages speak.

This list is in the lowest package because `teach --help` reads it, which must not import NumPy.
"""

from __future__ import annotations

from typing import NamedTuple


class SpokenLanguage(NamedTuple):
    """A language that the course and the pages are translated to."""

    # For the attribute `lang` of HTML and the header Content-Language (BCP 47).
    tag: str
    # In the language itself, as pages link to it.
    own_name: str
    # In English, as `--help` names it.
    english_name: str


# The language that everything is written in first, and that a translation is compared with.
ORIGINAL = "en"
# By the code that names the files of the translation, and that `--lang` and `?lang=` take.
LANGUAGES = {
    "en": SpokenLanguage("en", "English", "English"),
    "zh": SpokenLanguage("zh-Hans", "中文", "Chinese"),
}
