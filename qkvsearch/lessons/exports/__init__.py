"""A computed lesson in other forms: a document of plain data, Markdown, a notebook, a page."""
