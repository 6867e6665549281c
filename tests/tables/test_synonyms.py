"""Files of synonyms, and what is no rule."""

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.synonyms import as_synonyms, read_synonyms


def written(tmp_path, text):
    path = tmp_path / "synonyms.txt"
    path.write_text(text, "utf-8")
    return path


def test_rules_go_both_ways_or_one(tmp_path):
    path = written(
        tmp_path, "# ours\n sweater, jumper ,pullover\n\ntv => television, telly # one\n"
    )
    assert read_synonyms(path) == {
        "sweater": ["jumper", "pullover"],
        "jumper": ["sweater", "pullover"],
        "pullover": ["sweater", "jumper"],
        "tv": ["television", "telly"],
    }


@pytest.mark.parametrize("line", ["alone", "tv =>", "=> tv", "a, ,"])
def test_what_is_no_rule_is_named_with_its_line(tmp_path, line):
    with pytest.raises(DataError, match=r"synonyms\.txt, line 2: no rule"):
        read_synonyms(written(tmp_path, f"a, b\n{line}\n"))


def test_rules_of_too_many_pairs_are_refused(tmp_path):
    rule = ", ".join(f"word{k}" for k in range(1_001))
    with pytest.raises(DataError, match=r"line 1: more than 1,000,000 pairs"):
        read_synonyms(written(tmp_path, rule))


def test_a_device_that_never_ends_is_refused():
    with pytest.raises(DataError, match=r"/dev/zero: more than 200,000,000 bytes"):
        read_synonyms("/dev/zero")


def test_an_empty_file_is_an_error_and_none_is_none(tmp_path):
    with pytest.raises(DataError, match="no synonyms here"):
        read_synonyms(written(tmp_path, "# nothing\n"))
    assert as_synonyms(None) == {}
    assert as_synonyms({"tv": ("telly",)}) == {"tv": ["telly"]}


def test_synonyms_of_another_type_are_refused_by_their_name():
    for wrong in (5, b"x", [], {"tv": 5}, {"tv": [5]}, "a\0b", "\ud800"):
        with pytest.raises(DataError, match="`synonyms`"):
            as_synonyms(wrong)
    assert as_synonyms({"tv": "television"}) == {"tv": ["television"]}
