"""Ids: one spelling each, whole numbers as numbers, natural order, near matches."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import UnknownIdError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.ids import Ids, are_integers, factorize, id_text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([7, 7.0, "7", "7 ", " 7\n", np.int32(7), np.float32(7.0)], "7"),
        ([None, float("nan"), np.float64("nan"), "", " \t"], ""),
        (["007"], "007"),
        ([7.5], "7.5"),
        ([-0.0], "0"),
        ([10**20], "1" + "0" * 20),
        (["é b"], "é b"),
    ],
)
def test_all_spellings_of_an_id_are_one_text(values, text):
    assert {*map(id_text, values)} == {text}


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63), 10**18])
def test_whole_numbers_of_64_bits_are_integers(number):
    assert are_integers([str(number)])


@pytest.mark.parametrize(
    "text", ["007", "-0", "+7", "7.0", "1e3", "٧", "", "7a", str(2**63), str(-(2**63) - 1)]
)
def test_what_sqlite_could_not_store_as_the_same_number_is_text(text):
    assert not are_integers(["1", text])


@pytest.mark.parametrize(
    ("texts", "ids"), [(["30", "4", "-2"], [-2, 4, 30]), (["30", "4", "a"], ["30", "4", "a"])]
)
def test_ids_are_numbers_in_their_order_unless_one_is_none(texts, ids):
    assert list(Ids.sorted(texts)) == ids


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True))
def test_positions_invert_indexing_for_either_spelling(numbers):
    ids = Ids.sorted(map(str, numbers))
    assert ids.positions(list(ids)).tolist() == list(range(len(numbers)))
    assert ids.positions(map(str, ids)).tolist() == list(range(len(numbers)))


def test_membership_takes_either_spelling():
    ids = Ids(["30", "4"])
    assert 4.0 in ids
    assert "30 " in ids
    assert "030" not in ids


@pytest.mark.parametrize(
    ("unknown", "kind", "message"),
    [
        ("anna", "item", r"^no item 'anna'; did you mean anne\?$"),
        ("zzz", "id", r"^no id 'zzz'$"),
        ("anna", "user", r"^no user 'anna'$"),
    ],
)
def test_an_unknown_id_is_named_and_no_user_is_suggested(unknown, kind, message):
    with pytest.raises(UnknownIdError, match=message):
        Ids(["anne", "bob"]).positions(["bob", unknown], kind)


def test_factorize_merges_text_and_number():
    codes, ids = factorize(["1", 1, 1.0, " 1", None, float("nan"), "", 2])
    assert codes.tolist() == [0, 0, 0, 0, -1, -1, -1, 1]
    assert codes.dtype == np.int32
    assert list(ids) == [1, 2]
    assert [len(part) for part in factorize([])] == [0, 0]


@pytest.mark.parametrize("values", [[2**53 + 1, 2**53, None], pd.array([2**53 + 1, 2**53, None])])
def test_long_numbers_beside_a_gap_are_not_rounded_together(values):
    codes, ids = factorize(values)
    assert list(ids) == [2**53, 2**53 + 1]
    assert codes.tolist() == [1, 0, -1]


@given(st.lists(st.integers(-5, 5) | st.sampled_from(["a", "B", "05", None])))
def test_factorize_codes_lead_back_to_the_values(values):
    codes, ids = factorize(values)
    assert [ids.texts[code] if code >= 0 else "" for code in codes] == list(map(id_text, values))
    assert len(set(ids.texts)) == len(ids)


@pytest.mark.parametrize("bad", [".", "..", "a\nb", "a\x00b", "x" * 1001])
def test_a_row_with_an_id_that_no_address_can_contain_is_skipped_with_that_reason(bad):
    items = pd.DataFrame({"id": ["a", bad, "b"], "title": ["Tent", "Rope", "Mast"]})
    log = pd.DataFrame({"user": ["u", "v", bad], "item": ["a", bad, "b"]})
    dataset = read_dataset(items, log, Columns())
    for report, n_skipped in zip(dataset.reports, (1, 2), strict=True):
        (reason,) = report.skipped
        assert "no address" in reason
        assert report.skipped[reason] == n_skipped
