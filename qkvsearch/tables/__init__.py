"""Catalogs and interactions: reading, checking, ids, bundled samples, downloads, writing."""
