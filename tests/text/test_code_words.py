"""Words that look like code stay whole, and are found by their bare words as well."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qkvsearch._utils.folding import fold
from qkvsearch.text.analysis import NUMBER, Analyzer, matching_words, resolve_code, word_spans

analyzer = Analyzer()
signs = st.lists(
    st.sampled_from([*"ac9猫+#/&.' _\u0301ß", "++", "l'", "de", ".net", "3.5", "é", "＋"])
    | st.characters(),
    max_size=12,
).map("".join)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("C++", ["c++", "c"]),
        ("C#", ["c#", "c"]),
        ("(F#)", ["f#", "f"]),
        (".NET", [".net", "net"]),
        ("in .NET.", ["in", ".net", "net"]),
        ("AC/DC", ["ac/dc", "ac", "dc"]),
        ("R&B", ["r&b", "r", "b"]),
        ("AT&T", ["at&t", "at", "t"]),
        ("24/7", ["24/7", "24", "7"]),
        ("TCP/IP", ["tcp/ip", "tcp", "ip"]),
        ("004467", ["004467"]),
        ("1.2.3", ["1.2.3", "1", "2", "3"]),
        ("C/C++", ["c", "c++", "c"]),
        ("用C++写", ["用", "c++", "c", "写"]),
        ("J.K.罗琳", ["jk", "j.k", "罗琳", "罗", "琳"]),
        ("用 .注意", ["用", "注意", "注", "意"]),
        ("1.2.3版本", ["1.2.3", "1", "2", "3", "版本", "版", "本"]),
        ("C＋＋", ["c++", "c"]),
    ],
)
def test_code_is_a_word_of_its_own_and_its_bare_words(text, keys):
    assert analyzer.key_terms(text) == keys
    for language in ("german", "french", "none"):
        terms = Analyzer(language).key_terms(text)
        assert set(keys) <= set(terms)
        assert not any(token.is_stop_word for token in Analyzer(language).query_tokens(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I like C.", ["i", "like", "c"]),
        ("what?!", ["what"]),
        ("e.g. this", ["eg", "this"]),
        ("the end.Then more", ["the", "end", "then", "more"]),
        ("wait ...what", ["wait", "what"]),
        ("in 1999. 5 men", ["in", "1999", "5", "men"]),
        ("client/server", ["client", "server"]),
        ("rock & roll", ["rock", "roll"]),
        ("1 + 1", ["1", "1"]),
        ("#1 hit", ["1", "hit"]),
        ("Action|Sci-Fi", ["action", "sci", "fi"]),
    ],
)
def test_the_end_of_a_sentence_and_other_signs_are_no_code(text, words):
    assert [token.text for token in analyzer.tokens(text)] == words
    assert not any(token.subtokens for token in analyzer.tokens(text))


def test_words_that_say_nothing_say_nothing_between_them():
    assert analyzer.terms("rock and/or roll") == ["rock", "roll"]
    assert analyzer.terms("A/B testing") == ["a/b", "test"]


def test_a_number_with_a_point_means_as_little_as_one_without():
    assert analyzer.terms("version 2.0 of 3") == ["version"]


def test_code_that_nobody_knows_counts_by_its_bare_words():
    tokens = analyzer.query_tokens("AC/DC tests in C++")
    assert [token.term for token in resolve_code(tokens, {"c++"}.__contains__)] == [
        "ac", "dc", "test", "c++",
    ]  # fmt: skip
    assert resolve_code(tokens, {"c++", "ac/dc"}.__contains__) == tokens
    # A letter may mean anything.
    assert resolve_code(tokens[-1:], {"c"}.__contains__) == tokens[-1:]


def test_both_spellings_are_marked_where_they_stand():
    text = "Learn C++, then AC/DC"
    assert [text[a:b] for a, b in analyzer.spans(text, {"c++"})] == ["C++"]
    assert [text[a:b] for a, b in analyzer.spans(text, {"c", "dc"})] == ["C", "DC"]
    assert [text[a:b] for a, b in analyzer.spans(text, {"c", "c++"})] == ["C++"]
    assert [text[a:b] for a, b in analyzer.token_spans(text)] == ["Learn", "C++", "then", "AC/DC"]
    assert matching_words({"ac/dc"}, {"title": text}) == {"title": ["AC/DC"]}
    assert word_spans(["C++"], text) == [(6, 9)]


@given(signs, st.sampled_from(["english", "french", "german", "russian", "none"]))
@example("l'c++", "french")
@example("猫\u0301咪 a\u0301/b", "french")
@example("1.1.1.1.1.1.1.1.1.1x", "english")
@example("a/b/c/d/e/f", "german")
def test_whatever_a_text_is_found_by_has_a_place_in_it(text, language):
    asked = Analyzer(language)
    tokens, places = asked.tokens(text), asked.token_spans(text)
    assert len(tokens) == len(places)
    for token, (start, end) in zip(tokens, places, strict=True):
        marked = fold(text[start:end])
        # Numbers are read without the signs between thousands, and with a decimal point.
        assert token.text in marked or token.text in marked.replace(".", "") or NUMBER(token.text)
    for term in asked.key_terms(text):
        assert asked.spans(text, {term})


@given(signs)
def test_a_folded_text_has_the_same_tokens(text):
    assert analyzer.tokens(fold(text)) == analyzer.tokens(text)
    assert analyzer.key_terms(fold(text)) == analyzer.key_terms(text)


@pytest.mark.parametrize("unit", ["1.", "a/", "a&", "c+", "#", ".a", "1.1a", "l'", "c++"])
def test_long_chains_of_signs_are_read(unit):
    analyzer.key_terms(unit * 20_000)
    assert analyzer.tokens(unit * 20_000 + " sea")[-1].text == "sea"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("E.T. the film", ["et", "the", "film"]),
        ("J.R.R. Tolkien's U.S.A", ["jrr", "tolkien", "usa"]),
        ("É.T., x.y", ["et", "xy"]),
        ("the I.T. crowd", ["the", "i.t", "crowd"]),  # "it" is a stop word
        ("plan a.But b. c.", ["plan", "a", "but", "b", "c"]),
    ],
)
def test_initials_are_one_word(text, terms):
    assert [token.term for token in analyzer.tokens(text)] == terms
    assert len(analyzer.token_spans(text)) == len(terms)
