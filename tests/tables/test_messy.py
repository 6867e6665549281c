"""Whatever is in a file: it is read, or one clear line says why not."""

import pytest

from qkvsearch.engine import build
from qkvsearch.errors import DataError, QkvError
from qkvsearch.tables.sources import read_source
from tests.tables.messy import messy_table

pytest.importorskip("openpyxl")
pytest.importorskip("pyarrow")

# Of all tables, these are built too.
BUILT = 20


def check(seed, folder):
    """Whether the table was read. Anything but a table and a `DataError` of one line fails."""
    name, content = messy_table(seed)
    path = folder / name
    path.write_bytes(content)
    try:
        dataset = read_source(path)
    except DataError as error:
        said = str(error)
        if "\n" in said or not 10 < len(said) < 1_500:
            pytest.fail(f"seed {seed}: {said}")
        return False
    assert len(dataset.catalog) == len(dataset.catalog.frame)
    for report in dataset.reports:
        assert report.read == report.kept + report.merged + report.skipped.total(), seed
        assert report.kept >= 0, seed
    return True


def test_messy_tables_are_read_or_refused_in_one_line(tmp_path):
    read = [check(seed, tmp_path) for seed in range(40)]
    assert 10 < sum(read) < 30


@pytest.mark.slow
def test_a_thousand_messy_tables(tmp_path):
    read = [check(seed, tmp_path) for seed in range(1_000)]
    assert 300 < sum(read) < 700


@pytest.mark.slow
def test_what_can_be_read_can_be_built_and_asked(tmp_path):
    built = 0
    for seed in range(0, 2_000, BUILT):
        name, content = messy_table(seed)
        (tmp_path / name).write_bytes(content)
        try:
            engine = build(tmp_path / str(seed), tmp_path / name, encoder="corpus")
        except QkvError:
            continue
        with engine:
            engine.search("rain jacket")
            for user in list(engine.users)[:3]:
                engine.recommend(user=user)
        built += 1
    assert built > 20
