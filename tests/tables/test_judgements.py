"""Query files and judgements: both layouts, and errors that name the file and the line."""

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.judgements import read_judgements, read_queries


@pytest.fixture
def file(tmp_path):
    def write(content, name="file.tsv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# --- queries ---


QUERIES = {
    "as they stand": (
        'q1\tan "unclosed quote\nq2\twhat\tfollows a tab\n\n7\t 北京 \n',
        {"q1": 'an "unclosed quote', "q2": "what\tfollows a tab", "7": "北京"},
    ),
    "mark and CR LF": (b"\xef\xbb\xbfq1\tone\r\nq2\ttwo\r\n", {"q1": "one", "q2": "two"}),
    "line feeds end a line": (
        "q1\tone\u2028still one\x0cand on\n", {"q1": "one\u2028still one\x0cand on"}
    ),
    "a line twice": ("q1\tsame\nq1\tsame \n", {"q1": "same"}),
}  # fmt: skip


@pytest.mark.parametrize("case", QUERIES)
def test_queries_are_ids_and_texts(file, case):
    content, queries = QUERIES[case]
    assert read_queries(file(content)) == queries


@pytest.mark.parametrize("line", ["q2 no tab", "q2\t", "q2\t  ", "\ttext", "q2"])
def test_a_line_that_is_no_query_is_named(file, line):
    path = file(f"q1\tone\n\n{line}\n")
    with pytest.raises(DataError, match=rf"{path.name}, line 3: expected id<TAB>text"):
        read_queries(path)


def test_an_id_with_two_texts_is_named(file):
    path = file("q1\tone\nq2\ttwo\nq1\tother\n")
    with pytest.raises(DataError, match=rf"{path.name}, line 3: query q1"):
        read_queries(path)


# --- judgements ---


def test_a_pair_with_two_grades_is_named(file):
    path = file("q1\tv1\t1\nq1\tv2\t1\nq1\tv1\t2\n")
    with pytest.raises(DataError, match=rf"{path.name}, line 3: query q1 and item v1 .*1.*2"):
        read_judgements(path)


EXPECTED = {"q1": {"v1": 2, "v2": 0}, "q2": {"v1": 1}}


@pytest.mark.parametrize(
    "content",
    [
        "q1\t0\tv1\t2\nq1\t0\tv2\t0\nq2\t0\tv1\t1\n",
        "q1 0 v1 2\nq1  0  v2  0\nq2 Q0 v1 1 \n",
        "q1\tv1\t2\nq1\tv2\t0\nq2\tv1\n",
        "q1 v1 2 \nq1 v2 0 \nq2 v1 1 \n",
        "\ufeffq1\tv1\t2\r\nq1\tv2\t0\r\n\r\nq2\tv1\r\n",
        "q1\tv1\t2\nq1\tv2\t0\nq1\tv1\t2\nq2\tv1\n",
    ],
    ids=["TREC tabs", "TREC spaces", "tabs", "Cranfield", "mark and CR LF", "a line twice"],
)
def test_every_layout_says_the_same(file, content):
    assert read_judgements(file(content)) == EXPECTED


def test_between_tabs_ids_may_hold_spaces_and_grades_may_be_negative(file):
    judgements = read_judgements(file("my query\tToy Story (1995)\t-3\n"))
    assert judgements == {"my query": {"Toy Story (1995)": -3}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1", "line 2: expected query, iteration, item and grade"),
        ("q1 0 v1 1 extra", "line 2: expected query"),
        ("q1\t\t1", "line 2: expected query"),
        ("query\titem\tgrade", "line 2: 'grade' is no grade: give a whole number, and no header"),
        ("q1 0 v1 0.5", "line 2: '0.5' is no grade"),
    ],
)
def test_a_line_that_is_no_judgement_is_named(file, line, said):
    path = file(f"q1 0 v9 1\n{line}\n")
    with pytest.raises(DataError, match=said) as raised:
        read_judgements(path)
    assert str(path) in str(raised.value)


# --- both ---


@pytest.mark.parametrize("read", [read_queries, read_judgements])
def test_files_that_cannot_be_used_are_named(read, file, tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.tsv: no such file"):
        read(tmp_path / "nowhere.tsv")
    with pytest.raises(DataError, match="cannot read"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"file\.tsv: no "):
        read(file("\n \n"))
    with pytest.raises(DataError, match=r"file\.tsv, line 2: not text in UTF-8"):
        read(file(b"q1\tv1\t1\nq2\t\xff\xfe\t1\n"))


def test_a_grade_that_no_float_holds_is_refused(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text(f"q1 0 v1 {'9' * 400}\n")
    with pytest.raises(DataError, match=r"line 1: '9999.* is no grade"):
        read_judgements(path)
