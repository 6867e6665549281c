"""The texts of the pages, in each language."""

import json
import re

import pytest

from qkvsearch.lessons import LANGUAGES
from qkvsearch.web.pages import WORDS


def texts(language):
    """Each text by its section and name."""
    sections = json.loads((WORDS / f"{language}.json").read_text(encoding="utf-8"))
    return {
        (section, name): text for section in sections for name, text in sections[section].items()
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_all_texts_with_their_fields(language):
    english, translated = texts("en"), texts(language)
    assert list(translated) == list(english)
    for name, text in english.items():
        fields = re.findall(r"\{\w+\}", text)
        assert sorted(re.findall(r"\{\w+\}", translated[name])) == sorted(fields), name
