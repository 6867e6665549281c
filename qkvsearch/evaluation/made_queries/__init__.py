"""Queries that a catalog makes of itself, each with the item that answers it.

People who own a catalog rarely have judged queries. A made query knows its answer, because it was
made of it. It must not be in the very words of the item: whoever takes a query out of a text flatters
the heads that know that text.
"""
