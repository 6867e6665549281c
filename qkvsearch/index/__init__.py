"""The stored models of a build: to build them, load them, and keep them up to date.

A new model is a class in a module here, and an entry in `registry`.
"""

from qkvsearch.index.stored_models import StoredModels

__all__ = ["StoredModels"]
