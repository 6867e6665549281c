"""What is an operator and what is text, and that nothing is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.rank.query_language import MAX_OPERATORS, MAX_WORDS, parse_query

COLUMNS = {"title", "genre", "c"}


def read(query):
    return [str(clause) for clause in parse_query(query, COLUMNS.__contains__).clauses]


@pytest.mark.parametrize(
    ("query", "clauses"),
    [
        ('"rain jacket"', ['"rain jacket"']),
        ("jacket -potatoes", ["jacket", "-potatoes"]),
        ("genre:music song", ["genre:music", "song"]),
        ('-genre:"sci fi" space', ['-genre:"sci fi"', "space"]),
        ("red sho* blue", ["red", "sho*", "blue"]),
        ("title:sho*", ["title:sho*"]),
        ("“curly quotes” here", ['"curly quotes"', "here"]),
        ('"one", "two".', ['"one"', '"two"']),
        ("c:2005.", ["c:2005"]),
        ("c:2005, genre:pop; x", ["c:2005", "genre:pop", "x"]),
        ("c:2000.. c:..1999", ["c:2000..", "c:..1999"]),
        ("c:2000.., c:..1999. c:2000...", ["c:2000..", "c:..1999", "c:2000.."]),
        ("c:2000..2006,", ["c:2000..2006"]),
    ],
)
def test_operators_are_read(query, clauses):
    assert read(query) == clauses


@pytest.mark.parametrize(
    "query",
    [
        "", "-", "--", "- word", "rock - roll", '"', '""', '"unclosed phrase', 'a 7" single', "*",
        "**", "5 * 3", "^2", "word^", "word^two", "http://example.org", "12:30", "unknown:word",
        "genre:", "genre: music", "C++", "-!", '"!?"', "self-attention", "a*b", "AC/DC", "-.net",
    ],
)  # fmt: skip
def test_everything_else_is_text(query):
    assert not any(
        clause.is_condition for clause in parse_query(query, COLUMNS.__contains__).clauses
    )
    assert " ".join(read(query)).split() == query.split()


def test_a_boost_is_a_factor_within_limits():
    assert [(c.text, c.boost) for c in parse_query("word^2.5 other").clauses] == [
        ("word", 2.5),
        ("other", 1.0),
    ]
    assert parse_query("word^999").clauses[0].boost == 100
    assert {clause.boost for clause in parse_query("word^0").clauses} <= {1.0}


def test_what_a_sentence_has_in_quotation_marks_is_text():
    few, many = "in " * (MAX_WORDS - 1), "in " * (MAX_WORDS + 1)
    assert parse_query(f'{few}"so and so"').clauses[-1].kind == "phrase"
    assert not any(clause.is_condition for clause in parse_query(f'{many}"so and so"').clauses)
    assert [c.excluded for c in parse_query(f"{many} -word").clauses] == [False, True]


def test_operators_are_limited():
    clauses, n_ignored = parse_query("-word " * 500)
    assert sum(clause.is_condition for clause in clauses) == MAX_OPERATORS
    assert n_ignored == 500 - MAX_OPERATORS


@given(st.text(st.sampled_from('ab "-:*^2.,“”é猫\n\t'), max_size=40))
def test_no_text_is_lost(query):
    """Each letter of the query is in some clause or is the name of a field."""
    clauses = parse_query(query, lambda name: name == "a").clauses
    kept = "".join(clause.text + clause.field for clause in clauses)
    assert sorted(filter(str.isalpha, kept)) == sorted(filter(str.isalpha, query))
