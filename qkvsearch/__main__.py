"""`python -m qkvsearch`, for where scripts are not on the path."""

from qkvsearch.cli import process

if __name__ == "__main__":
    process()
