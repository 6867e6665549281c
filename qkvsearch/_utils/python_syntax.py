"""A lock for whoever parses Python's syntax, which the header of a `.npy` file is written in too.

Before Python 3.13, CPython counts in one place for all threads how deep the tree is that it makes.
Where the garbage collector lets another thread parse in between, it raises a `SystemError`:
"AST constructor recursion depth mismatch" (CPython's issue 106905). An array would seem damaged.
"""

from qkvsearch._utils.forks import fork_lock

parsing_python = fork_lock()
