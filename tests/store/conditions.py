"""Conditions over one table of a database."""

from qkvsearch.tables.catalog_columns import sql_name
from qkvsearch.where import matching_in_all


def matching_positions(connection, table, columns, where):
    """The positions of the rows for which a condition is true."""

    def cells(column):
        rows = connection.execute(f'SELECT {sql_name(column.stored)} FROM "{table}"')
        return (cell for (cell,) in rows if cell is not None)

    (matches,) = matching_in_all([(connection, table)], columns, where, cells)
    return matches.tolist()
