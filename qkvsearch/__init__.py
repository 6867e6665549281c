"""qkvsearch: search, recommendation and self-attention as one computation."""
