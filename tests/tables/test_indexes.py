"""The index of a frame, or of one in Parquet: a column where it says more than the row's number."""

import pandas as pd
import pytest

from qkvsearch.tables.dataset import load

ROWS = {"title": ["Kettle", "Lamp", "Rope"]}
CODES = ["a7", "b3", "c1"]


@pytest.fixture(params=["frame", "parquet"])
def read(request, tmp_path):
    """Reads a frame as it is, or from Parquet, as lists by column."""

    def reader(frame):
        source = frame
        if request.param == "parquet":
            pytest.importorskip("pyarrow")
            source = tmp_path / "items.parquet"
            frame.to_parquet(source)
        return load(source, "items")[0].frame().to_dict("list")

    return reader


def test_an_index_with_a_name_is_a_column(read):
    frame = pd.DataFrame(ROWS, index=pd.Index(CODES, name="id"))
    assert read(frame) == {"id": CODES, **ROWS}


def test_levels_with_names_are_columns(read):
    index = pd.MultiIndex.from_arrays([CODES, [4, 5, 6]], names=["id", "size"])
    assert read(pd.DataFrame(ROWS, index=index)) == {"id": CODES, "size": ["4", "5", "6"], **ROWS}


def test_numbers_of_rows_are_no_column(read):
    assert read(pd.DataFrame(ROWS, index=[4, 7, 9])) == ROWS
    assert read(pd.DataFrame(ROWS)) == ROWS


def test_an_index_of_texts_without_a_name_is_a_column(read):
    assert read(pd.DataFrame(ROWS, index=CODES)) == {"index": CODES, **ROWS}
