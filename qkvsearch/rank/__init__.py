"""After a question: query, conditions, fusion, second pass, ranking and reasons.

Nothing here writes.
"""
