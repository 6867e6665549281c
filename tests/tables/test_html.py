"""Texts with HTML become what a person would read; what only looks like HTML stays."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.tables.columns.html import BLOCKS, INLINE, plain_text, without_html


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<p>A <b>tent</b> for&nbsp;you &amp; me</p><ul><li>x</li></ul>", "A tent for you & me x"),
        ("<ul><li>red</li><li>blue</li></ul>", "red blue"),
        ("<td>a</td><td>b</td>", "a b"),
        ("one<br>two<br/>three", "one two three"),
        ("<b>A</b>B", "AB"),
        ("<P CLASS=x>Loud</P>", "Loud"),
        ('<a href="http://x/?a=1&b=2" title=\'a > b\'>link</a>', "link"),
        ("<input disabled>x", "x"),
        ("a<script>if (a<b) { '<p>' }</script>b", "ab"),
        ("<style>p { color: red }</style>x", "x"),
        ("<!-- a note -->x<!DOCTYPE html>", "x"),
        ("<![CDATA[kept]]>", "kept"),
        ("12&nbsp;&euro; &#8364; &#x20AC;", "12 € € €"),
        ("R&amp;B", "R&B"),
        ("5 &lt; 6 &gt; 4", "5 < 6 > 4"),
        ("first\nsecond &amp; third", "first\nsecond & third"),
        ("<p>first\n  second</p>", "first second"),
    ],
)  # fmt: skip
def test_tags_and_entities_become_what_they_stand_for(text, read):
    assert plain_text(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "AT&T", "a < b", "x<y>z", "<3", "I <3 U", "C++ <vector>", "List<String> i", "a<b and c>d",
        "R&D; more", "http://x/?a=1&copy=2&reg=3", "tail <b", "<", "<>", "a <! b", "&", "&;",
        "&foo;", "&notit;", "</y>", "if (a<b)", "fish & chips;", "1 << 2 >> 3",
    ],
)  # fmt: skip
def test_what_only_looks_like_html_stays(text):
    assert plain_text(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a&amp;nbsp;b", "a b"),
        ("&lt;p&gt;Hi&lt;/p&gt;", "Hi"),
        ("Tom &amp;amp; Jerry", "Tom & Jerry"),
        ("&amp;lt;br&amp;gt;x", "x"),
    ],
)
def test_what_was_escaped_twice_is_read_twice(text, read):
    assert plain_text(text) == read


@pytest.mark.parametrize("text", ["<![a;", "<![;", "a <![b c"])
def test_what_is_no_section_is_text(text):
    assert plain_text(text) == text


def test_a_tag_that_a_text_is_about_stays():
    assert plain_text("Use &lt;b&gt; for bold") == "Use <b> for bold"


def test_a_script_that_is_never_closed_does_not_swallow_the_rest():
    assert plain_text("the <script> tag") == "the tag"


@given(st.text(alphabet="ab <>&;/p\"'=!-[]", max_size=30))
def test_any_text_is_read_to_one_that_is_read_no_further(text):
    once = plain_text(text)
    assert plain_text(once) == once or "<" in once or "&" in once


@given(
    st.sampled_from(sorted(BLOCKS - {"textarea", "title", "iframe"})), st.text("xy z", min_size=1)
)
def test_every_block_separates_words(tag, text):
    assert plain_text(f"a<{tag}>{text}</{tag}>b").split() == ["a", *text.split(), "b"]


@pytest.mark.parametrize("tag", sorted(INLINE - {"script", "style", "noscript"}))
def test_every_other_tag_joins_them(tag):
    assert plain_text(f"a<{tag}>b") == "ab"


UNCLOSED = [
    "<a ", "<a/", "<br/", "<x ", '<a href="', '<a b="c"', '<a "<a" ', "<script ", "<!--", "<!-- -",
    "<![CDATA[", "<?", "</", "<", "&", "&amp", "&#",
]  # fmt: skip


@pytest.mark.parametrize("begun", UNCLOSED)
@pytest.mark.parametrize("end", ["", " '"])
def test_markup_begun_a_hundred_thousand_times_is_read_once(begun, end):
    text = begun * 100_000 + end  # in quadratic time this would not end today
    assert plain_text(text) == text.strip()


def test_texts_without_html_are_left_alone():
    texts = pd.Series(["a", "b < c"], dtype=object)
    assert without_html(texts).tolist() == ["a", "b < c"]
    assert without_html(pd.Series(["a", "<p>b</p>"], dtype=object)).tolist() == ["a", "b"]
