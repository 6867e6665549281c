"""A lesson in the terminal: how it looks, how it is read, and what it asks."""
