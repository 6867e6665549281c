"""Files of text, such as transcripts and pages: each is one item."""
