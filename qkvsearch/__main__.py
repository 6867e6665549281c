"""`python -m qkvsearch`, for where scripts are not on the path."""

from qkvsearch.cli import main

if __name__ == "__main__":
    main()
