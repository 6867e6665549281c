"""A text query to ranked items: terms, misspelled words, conditions, snippets and facets."""
