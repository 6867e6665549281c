"""What a text query asks of a build: its words, what typos mean, and what must hold of an item."""
