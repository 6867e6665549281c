"""How good the answers are: metrics, splits and protocols for search and for recommendation.

Imported by module: those for recommendations train models, and those for searches do not.
"""
