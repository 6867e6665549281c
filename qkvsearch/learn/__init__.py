"""Before a question: build, add, remove, merge, learn, forget, repair and record."""
