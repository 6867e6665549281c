"""From texts to vectors: words, encoders, and the self-attention of a text's tokens."""
