"""Embeddings of users and items learned from their interactions: collaborative filtering."""
