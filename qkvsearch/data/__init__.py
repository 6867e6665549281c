"""Catalogues and interactions in: readers, samples, ids."""
