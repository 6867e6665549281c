"""Shops that write a product's own cells in the row of its first variant alone."""

from __future__ import annotations

import pandas as pd

from qkvsearch.data.columns.names import folded, words_of
from qkvsearch.data.report import ReadReport


def with_product_cells(frame: pd.DataFrame, title: str, report: ReadReport) -> pd.DataFrame:
    """Rows without a title, with what the titled row of the same handle says of their product.

    Of the product are the columns that are blank in all those rows, but for what is named as a
    variant's own. How many rows took cells is noted in `report`.
    """
    handles = [name for name in frame if folded(name) == "handle" and name != title]
    if not handles:
        return frame
    handle, titled = handles[0], frame[frame[title].notna()]
    product = titled.drop_duplicates(handle).set_index(handle)
    rows = frame.index[frame[title].isna() & frame[handle].isin(product.index)]
    of_product = [
        name
        for name in frame
        if name != handle
        and words_of(name)[:1] != ["variant"]
        and frame.loc[rows, name].isna().all()
    ]
    report.note(len(rows), "{n} rows took the cells of their product, by {column}", column=handle)
    filled = frame.copy()
    filled.loc[rows, of_product] = product.loc[frame.loc[rows, handle], of_product].to_numpy()
    return filled
