"""Collaborative filtering: embeddings of users and items, learned from their interactions."""
