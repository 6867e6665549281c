"""Times and dates: read cell by cell, and unreadable ones counted."""

import numpy as np
import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns.dates import are_times, parse_dates
from qkvsearch.tables.log import times_in
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import table_of
from qkvsearch.tables.times import UNKNOWN_TIME

MARCH_1 = 1_709_251_200


def days(*cells):
    dates, notes = parse_dates(pd.Series(cells, dtype=object, name="when"))
    return [None if pd.isna(date) else f"{date:%Y-%m-%d}" for date in dates], notes


def seconds(*cells):
    report = ReadReport("log.csv", read=len(cells))
    table = table_of(pd.DataFrame({"when": pd.Series(cells, dtype=object)}))
    times = times_in(table, "when", np.ones(len(cells), dtype=bool), report)
    return (None if times is None else times.tolist()), "; ".join(report.notes)


@pytest.mark.parametrize(
    "cell",
    [
        "2024-03-01", "2024年3月1日", "2024/3/1", "2024.03.01", "1.3.2024", "1.3.24",
        "March 1, 2024", "1 March 2024", "01-Mar-2024", "Fri, 01 Mar 2024 10:00:00 +0100",
        "20240301", "2024-03-01T00:00Z", "2024-03-01T00:30:00+00:30", "1709251200", "1709251200000",
        "20240301101500",
    ],
)  # fmt: skip
def test_a_day_is_the_same_day_however_it_is_written(cell):
    assert days(cell, "March 2, 2024")[0] == ["2024-03-01", "2024-03-02"]


@pytest.mark.parametrize(
    "cell",
    [
        "soon", "now", "May", "12:30", "12:30:45", "5", "1e5", "2024-02-30", "0000-00-00",
        "2024-03-01 25:00", "17.14.11", "10-10", "inf", "1e300", "1.2.3",
    ],
)  # fmt: skip
def test_what_lacks_a_day_or_a_year_is_no_date(cell):
    assert days(cell, "March 2, 2024")[0] == [None, "2024-03-02"]


DAYS = {
    "mixed formats": (
        ["2024-03-01", "13/03/2024", None, "April 1, 2024 5:30 PM", "1709290000", " "],
        ["2024-03-01", "2024-03-13", None, "2024-04-01", "2024-03-01", None],
    ),
    "one cell with the day first": (["01/03/2024", "13/03/2024"], ["2024-03-01", "2024-03-13"]),
    "one cell with the month first": (["01/03/2024", "03/13/2024"], ["2024-01-03", "2024-03-13"]),
    "years of two digits": (
        ["13/1/24", "13/1/68", "13/1/69"], ["2024-01-13", "2068-01-13", "1969-01-13"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAYS)
def test_cells_are_read_one_by_one_in_the_order_of_the_column(case):
    cells, expected = DAYS[case]
    assert days(*cells) == (expected, [])


def test_a_column_that_does_not_tell_day_from_month_is_said():
    dates, notes = days("01/03/2024", "05/06/2024")
    assert dates == ["2024-01-03", "2024-05-06"]
    assert notes == ["column when: no cell tells day from month; 01/03/2024 read month first"]


TIMES = {
    "a time of day and a zone": (
        ["2024-03-01 10:00", "2024-03-01T10:00:00+02:00", "3/1/24 5:00 pm"],
        [MARCH_1 + 36_000, MARCH_1 + 28_800, MARCH_1 + 61_200],
    ),
    "days of a spreadsheet": (["45352", "45352.5"], [MARCH_1, MARCH_1 + 43_200]),
    "thousands of years": (
        ["9999-12-31T23:59:59Z", "1969-12-31T23:59:59.5Z", "1500-01-01T00:00:00Z"],
        [253_402_300_799, -1, -14_831_769_600],
    ),
    "the last second alone": (["9999-12-31T23:59:59Z"] * 2, [253_402_300_799] * 2),
    "no cell": ([None, None], None),
}


@pytest.mark.parametrize("case", TIMES)
def test_times_are_seconds_since_1970(case):
    cells, expected = TIMES[case]
    assert seconds(*cells)[0] == expected


@pytest.mark.parametrize(
    "numbers", [[3, 1, 45352], [10**9, 17 * 10**8], [20010909014640, 20010909014641, 0]]
)
def test_other_numbers_stay_as_they_are(numbers):
    assert seconds(*map(str, numbers)) == (numbers, "")


@pytest.mark.parametrize(
    ("unit", "digits"), [("milliseconds", 3), ("microseconds", 6), ("nanoseconds", 9)]
)
@pytest.mark.parametrize("others", [[None], ["2024-03-01"]])
def test_finer_units_are_brought_to_seconds_and_noted(unit, digits, others):
    cells = [f"{second}5{'0' * (digits - 1)}" for second in (MARCH_1, MARCH_1 - 10**8)]
    times, notes = seconds(*cells, *others)
    assert times[:2] == [MARCH_1, MARCH_1 - 10**8]
    assert (f"column when is in {unit}, and was brought to seconds" in notes) == (others == [None])


def test_seconds_and_milliseconds_in_one_column_are_the_same_times():
    times, notes = seconds("1709251200", "1709251200000")
    assert times == [MARCH_1, MARCH_1]
    assert "is in part in milliseconds" in notes


def test_milliseconds_beside_words_are_brought_to_seconds_too():
    times, notes = seconds("1709251200000", "1709251201000", "soon")
    assert times[:2] == [MARCH_1, MARCH_1 + 1]
    assert "column when is in milliseconds, and was brought to seconds" in notes


def test_a_missing_time_is_earlier_than_1950():
    times, notes = seconds("1950-01-02", None, "1980-01-01")
    assert times[1] < times[0] < 0 < times[2]
    assert notes == "1 row without a time counts as earlier than all others"


def test_unreadable_cells_are_counted_with_a_row_and_do_not_stop_the_build():
    times, notes = seconds("2024-03-01", "soon", "2024-03-02")
    assert times == [MARCH_1, UNKNOWN_TIME, MARCH_1 + 86_400]
    assert "column 'when': 1 of 3 cells is not a time, the first in row 1" in notes
    assert "soon" not in notes


@pytest.mark.parametrize("bad", ["soon", "inf", "1e30"])
def test_a_column_of_no_times_is_an_error_with_row_and_cell(bad):
    with pytest.raises(
        DataError, match=r"log\.csv: column 'when': 2 of 3 cells are not times, the first in row 0"
    ):
        seconds(bad, bad, "2024-03-02")


def test_counts_and_years_are_no_sign_of_times():
    assert not are_times(pd.Series(["1", "1999", "45352", "20240301"])).any()
    assert are_times(pd.Series(["1709251200", "2024-03-01"])).all()


def test_hours_of_a_million_orders_are_no_loop():
    """Each distinct cell is read once, and those of a common form all at once."""
    cells = pd.Series(
        [f"{d:02d}/03/2024 {h:02d}:15" for d in range(1, 29) for h in range(24)] * 100
    )
    dates, _ = parse_dates(cells)
    assert dates.nunique() == 28 * 24
