"""Quoted cells as programs write them: over several lines, behind backslashes, and malformed."""

import io
import random

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.files import delimited
from qkvsearch.tables.files.quotes import Grammar, QuotedText
from qkvsearch.tables.files.tables import read_table


@pytest.fixture
def read(tmp_path):
    """Writes a text to a file and reads it: cells as lists, and the report."""

    def reader(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        frame, report = read_table(path)
        return frame.to_numpy().tolist(), report

    return reader


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_cell_of_several_lines_has_quotes_behind_backslashes(read, separator, end):
    text = f'1{end}second with \\"quote\\"{separator * 2} and more{end}third{separator} fourth'
    lines = [["id", "title"], ["1", f'"{text}"'], ["2", '"Two"'], ["3", '"ends \\"here\\""']]
    rows, report = read(end.join(map(separator.join, lines)) + end)
    expected = [text.replace("\\", ""), "Two", 'ends "here"']
    assert [cell.replace("\r\n", end) for _, cell in rows] == expected
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert not report.warnings


def test_a_backslash_at_the_end_of_a_cell_stays_where_the_next_line_has_quotes(read):
    rows, _ = read('id,a,b\n1,"C:\\","x"\n2,"D:\\","-"\n3,"E:\\","y ""z"""\n')
    assert rows == [["1", "C:\\", "x"], ["2", "D:\\", "-"], ["3", "E:\\", 'y "z"']]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (['1,"broken', "2,Blue", '3,"closed"'], "lines 2 to 4"),
        (['1,"Monitor 27"",plain', '2,"x"'], "lines 2 to 3"),
        (['0,"good ""one"" here"', '1,"broken', "2,x", '3,"closed" tail', "4,x"], "lines 3 to 5"),
        (['1,"has "quotes, and" within"'], "line 2"),
    ],
)
def test_a_quote_that_may_swallow_rows_is_an_error_with_its_lines(read, lines, place):
    with pytest.raises(DataError) as caught:
        read("\n".join(["id,title", *lines]) + "\n")
    assert f"table.csv, {place}: " in str(caught.value)
    assert '""' in str(caught.value)


def test_a_malformed_cell_names_no_user(read):
    with pytest.raises(DataError) as caught:
        read('id,title\n1,"ann@example.org wrote\n2,"x"\n')
    assert "ann@" not in str(caught.value)


def test_text_behind_a_closing_quote_is_kept_as_written_and_counted(read):
    rows, report = read(
        'id,title,text\n1,"closed" tail,"more, text"\n2,plain,x\n3,"He said "hello" to me",y\n'
    )
    assert rows == [
        ["1", '"closed" tail', "more, text"],
        ["2", "plain", "x"],
        ["3", '"He said "hello" to me"', "y"],
    ]
    (warning,) = report.warnings
    assert "2 quoted cells" in warning
    assert 'line 2 ("closed" tail)' in warning


def test_lines_above_the_header_count_in_the_line_of_an_error(read):
    with pytest.raises(DataError, match="lines 5 to 6"):
        read('My shop\n\nid,title\n1,x\n2,"broken\n3,"closed"\n4,y\n5,z\n')


def test_a_quote_within_an_unquoted_cell_is_text(read):
    rows, report = read('id,title,size\n1,TV 55" wide,55"\n2,Pipe 5 " long, "x, y" \n')
    assert rows[0] == ["1", 'TV 55" wide', '55"']
    assert rows[1][:2] == ["2", 'Pipe 5 " long']
    assert rows[1][2].strip() == "x, y"
    assert not report.warnings


def test_cells_are_whole_wherever_a_piece_ends(read, monkeypatch):
    draw = random.Random(0)
    texts = [
        "".join(draw.choice(["a", " ", '"', "\n", ",", "é"]) for _ in range(draw.randrange(12)))
        for _ in range(400)
    ]
    frame = pd.DataFrame({"id": [f"i{n}" for n in range(400)], "text": texts, "last": "z"})
    for doubled in (True, False):
        marks = {"doublequote": doubled, "escapechar": None if doubled else "\\"}
        monkeypatch.setattr(delimited, "BLOCK", 1 << 23)
        whole, _ = read(frame.to_csv(index=False, quoting=1, **marks))
        monkeypatch.setattr(delimited, "BLOCK", 7)
        pieces, _ = read(frame.to_csv(index=False, quoting=1, **marks))
        assert pieces == whole
        assert ["" if pd.isna(text) else text for _, text, _ in whole] == texts


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ('1,"a ""b"" c"', '1,"a ""b"" c"'),
        ('1,5" pipe', '1,5" pipe'),
        ('1,"\\"Sea\\" Inn"', '1,"""Sea"" Inn"'),
        ('1,"C:\\dir\\",x', '1,"C:\\dir\\",x'),
        ('1,"closed" tail', '1,"""closed"" tail"'),
        ('1,"one "two, x" y"', None),
        ('1,"open\n2,"x" y', None),
    ],
)
def test_the_examples_at_the_top_of_quotes(text, rewritten):
    quotes = QuotedText(io.StringIO(text), ",", "t")
    if rewritten is None:
        with pytest.raises(DataError):
            quotes.read()
    else:
        assert quotes.read() == rewritten


def test_regular_text_stays_as_it_is():
    text = 'id,title\n1,"a ""b"" c"\n2, "x, y"\n3,5" pipe\n4,"two\nlines"\n'
    assert QuotedText(io.StringIO(text), ",", "t").read() == text


def test_a_regular_text_is_regular_wherever_it_is_looked_at_from():
    draw = random.Random(0)
    grammar = Grammar(",")
    n_regular = 0
    for _ in range(20_000):
        text = "".join(draw.choice('"",\na\\') for _ in range(draw.randrange(10)))
        text = f',"x",{text}\n'
        # The whole text is checked in another way than its rest.
        irregular = grammar.next_irregular(text, 0)
        assert irregular == grammar.next_irregular(text, 1), text
        n_regular += irregular == len(text)
    assert n_regular > 1_000


def test_a_long_line_of_malformed_cells_takes_no_longer_than_its_cells():
    text = '"a" b,' * 50_000 + "\n"
    quotes = QuotedText(io.StringIO(text), ",", "t")
    assert quotes.read() == text.replace('"a" b', '"""a"" b"')
    assert "50,000 quoted cells" in quotes.note()
