"""What an executor does with the cells of a log: which rows can be used, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from qkvsearch.data.columns.date_cells import SERIAL_DAYS, iso_dates
from qkvsearch.data.columns.times import numbers_of, whole_seconds
from qkvsearch.data.ids import BLANK, WHOLE_NUMBER, WITH_POINT, Ids, identified
from qkvsearch.data.log import LARGEST
from qkvsearch.engines.spark.cells import ROW, SKIP, facts_batch
from qkvsearch.engines.spark.tables import Rows, arrow_schema

# The first code of a reason why a row cannot be used, in the order in which they are looked for.
FIRST_REASON = 10
WITHOUT_USER, WITHOUT_ITEM, UNKNOWN_ITEM = FIRST_REASON, FIRST_REASON + 1, FIRST_REASON + 2
OF_NUMBERS = {"rating": FIRST_REASON + 3, "weight": FIRST_REASON + 6}
ROWS = (
    f"{ROW} bigint, {SKIP} int, user string, item int, item_text string, rating double, "
    "weight double, time_text string"
)
TIMED = (
    "row bigint, user string, item int, item_text string, rating double, weight double, time bigint"
)
SPELLINGS = "user string, n bigint, row bigint, key string"
KINDS = {"double": pa.float64()}


def schema_of(form: str) -> pa.Schema:
    """In Arrow, with floats."""
    fields = [one.split() for one in form.split(", ")]
    return pa.schema(
        [
            (name, KINDS[kind]) if kind in KINDS else arrow_schema(f"{name} {kind}").field(0)
            for name, kind in fields
        ]
    )


ROWS_SCHEMA, TIMED_SCHEMA, SPELLINGS_SCHEMA = map(schema_of, (ROWS, TIMED, SPELLINGS))


@dataclass(frozen=True)
class RowReading:
    """How the cells of a log become rows. places: the column of each role. numbers: of ratings and
    weights what each cell means, None where all are plain numbers. item_ids: of the catalog; whole:
    items are whole numbers, some of them written with a point.
    """

    places: Mapping[str, str]
    numbers: Mapping[str, Mapping[str, float] | None]
    item_ids: Ids | None
    whole_items: bool
    rating_scale: tuple[float, float] | None


def read_rows(how: RowReading) -> Callable[[Rows], Rows]:
    """Cells to rows with a reason for each that cannot be used, as `data.log` has them."""

    def read(batches: Rows) -> Rows:
        for batch in batches:
            yield _rows_of(batch, how)

    return read


def _rows_of(batch: pa.RecordBatch, how: RowReading) -> pa.RecordBatch:
    skip = batch.column(SKIP).to_numpy().copy()
    user, item = (_stripped(batch.column(how.places[role])) for role in ("user", "item"))

    def drop(bad: np.ndarray, code: int) -> None:
        skip[bad & (skip == 0)] = code

    drop(_gaps(user), WITHOUT_USER)
    drop(_gaps(item), WITHOUT_ITEM)
    codes = np.full(len(skip), -1, dtype=np.int32)
    if how.item_ids is not None:
        codes = _codes(item, how.item_ids, how.whole_items)
        drop(codes < 0, UNKNOWN_ITEM)
    found = {}
    for role, code in OF_NUMBERS.items():
        found[role] = np.full(len(skip), np.nan)
        if role in how.places:
            found[role] = _numbers(batch.column(how.places[role]), how.numbers[role])
            drop(np.isinf(found[role]), code)
            drop(np.abs(found[role]) > LARGEST, code + 1)
            if role == "rating" and how.rating_scale is not None:
                low, high = how.rating_scale
                drop((found[role] < low) | (found[role] > high), code + 2)
    texts = pa.nulls(len(skip), pa.string())
    time = batch.column(how.places["time"]) if "time" in how.places else texts
    columns = [
        batch.column(ROW), skip, user, codes, texts if how.item_ids is not None else item,
        found["rating"], found["weight"], time,
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=ROWS_SCHEMA)


def _stripped(cells: pa.Array) -> pa.Array:
    """Ids as `id_text` has them; blank ones missing."""
    texts = pc.utf8_trim(cells, BLANK)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _gaps(cells: pa.Array) -> np.ndarray:
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False))


def _codes(items: pa.Array, known: Ids, whole: bool) -> np.ndarray:
    """The row numbers of items in the catalog, −1 for others."""
    coded = items.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    codes, _ = identified(texts, np.ones(len(texts), np.int64), known, whole=whole)
    places = coded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    return np.append(codes, np.int32(-1))[places]


def _numbers(cells: pa.Array, meaning: Mapping[str, float] | None) -> np.ndarray:
    """NaN for a gap, ∞ for what is no number."""
    texts = pd.Series(cells.to_pylist(), dtype=object)
    if meaning is not None:
        return texts.map(meaning).to_numpy(float)
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


def look_at_ids(place: str) -> Callable[[Rows], Rows]:
    """Whether some of a column's ids end as 7.0 does, and all are whole numbers."""

    def look(batches: Rows) -> Rows:
        pointed, whole = False, True
        for batch in batches:
            for text in _stripped(batch.column(place)).unique().to_pylist():
                if text is not None:
                    pointed |= text.endswith(".0")
                    whole &= bool(WHOLE_NUMBER.fullmatch(text) or WITH_POINT.fullmatch(text))
        yield facts_batch({"pointed": pointed, "whole": whole})

    return look


def look_at_numbers(place: str) -> Callable[[Rows], Rows]:
    """Whether a cell is there that is no plain number."""

    def look(batches: Rows) -> Rows:
        odd = False
        for batch in batches:
            texts = pd.Series(batch.column(place).to_pylist(), dtype=object)
            odd |= bool((pd.to_numeric(texts, errors="coerce").isna() & texts.notna()).any())
        yield facts_batch({"odd": odd})

    return look


def look_at_times() -> Callable[[Rows], Rows]:
    """Whether all times are numbers, or all ISO 8601; the ends of the numbers, how many are in
    which unit, and how many there are."""

    def look(batches: Rows) -> Rows:
        facts: dict[str, Any] = {"numbers": True, "iso": True, "ends": [], "units": {}, "n": 0}
        for batch in batches:
            texts = pd.Series(batch.column("time_text").drop_null().to_pylist(), dtype="str")
            if texts.empty:
                continue
            numbers = numbers_of(texts)
            facts["n"] += len(texts)
            facts["numbers"] &= bool(numbers.notna().all())
            facts["iso"] &= bool(iso_dates(texts).notna().all())
            facts["ends"] = [*facts["ends"], float(numbers.min()), float(numbers.max())]
            for unit, n in whole_seconds(numbers)[1].items():
                facts["units"][unit] = facts["units"].get(unit, 0) + n
        facts["ends"] = [min(facts["ends"]), max(facts["ends"])] if facts["ends"] else []
        yield facts_batch(facts)

    return look


def alone(facts: list[dict[str, Any]]) -> str:
    """How times are read of which each tells by itself, "numbers" or "iso"; "" for others."""
    there = [fact for fact in facts if fact["n"]]
    ends = [end for fact in there for end in fact["ends"]]
    if there and all(fact["numbers"] for fact in there):
        as_days = SERIAL_DAYS[0] <= min(ends) and max(ends) <= SERIAL_DAYS[1]
        return "" if as_days else "numbers"
    return "iso" if there and all(fact["iso"] for fact in there) else ""


def read_times(how: str, meaning: Mapping[str, int | None] | None) -> Callable[[Rows], Rows]:
    """The text of times to seconds, missing where there is none."""

    def seconds(texts: pd.Series) -> pd.Series:
        if meaning is not None:
            return texts.map(meaning).astype("Int64")
        if how == "numbers":
            return whole_seconds(numbers_of(texts))[0]
        since = (iso_dates(texts) - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
        return since.astype("Int64")

    def read(batches: Rows) -> Rows:
        for batch in batches:
            texts = pd.Series(batch.column("time_text").to_pylist(), dtype=object)
            found = pd.Series(pd.NA, index=texts.index, dtype="Int64")
            there = texts.notna()
            found[there] = seconds(texts[there].astype("str"))
            columns = [batch.column(name) for name in TIMED_SCHEMA.names[:-1]]
            times = pa.array(found, pa.int64(), from_pandas=True)
            yield pa.RecordBatch.from_arrays([*columns, times], schema=TIMED_SCHEMA)

    return read


def fold_users() -> Callable[[Rows], Rows]:
    """Beside each spelling of an id (user, n, row) what is equal for all of its cases."""

    def fold(batches: Rows) -> Rows:
        for batch in batches:
            keys = [text.casefold() for text in batch.column("user").to_pylist()]
            columns = [batch.column(name) for name in SPELLINGS_SCHEMA.names[:-1]]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(keys)], schema=SPELLINGS_SCHEMA)

    return fold
