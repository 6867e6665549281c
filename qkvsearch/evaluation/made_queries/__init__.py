"""Queries that a catalog makes of itself, each with the items that answer it.

People who own a catalog rarely have judged queries. A made query knows its answer, because it was
made of it. Where texts are long, a query in the words of its own item favours whatever matches
words. So each kind says what its queries can compare (`QueryKind.carries`).
"""
