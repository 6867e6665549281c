"""The texts of the pages, in each language."""

import json
import re

import pytest

from qkvsearch.heads.preference_heads import PREFERENCE_HEADS
from qkvsearch.heads.search_head import TextHead
from qkvsearch.heads.search_heads import HEADS
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_head_has_a_title_in_every_language_or_is_called_by_its_encoder(language):
    untitled = [head for head in HEADS if language not in head.titles]
    assert all(isinstance(head, TextHead) and not head.titles for head in untitled)


def test_no_two_heads_have_one_name_or_one_title():
    assert len({head.name for head in HEADS}) == len(HEADS)
    titles = [head.titles["en"] for head in HEADS if head.titles]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_recommendations_knows_every_head_in_every_language(language, client):
    titles = {name: head.titles[language] for name, head in PREFERENCE_HEADS.items()}
    page = client.get("/recommend", params={"lang": language}).text
    facts = re.search(r'<script[^>]* id="facts"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(facts[1])["headTitles"] == titles
