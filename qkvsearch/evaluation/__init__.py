"""How good the answers are: metrics, splits and protocols for search and for recommendation.

Imported by module, because `recommend` trains models and `search` needs none of their libraries.
"""
