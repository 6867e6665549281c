"""The version of the package, for modules below its face."""

__version__ = "0.3.0"
