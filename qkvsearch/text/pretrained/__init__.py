"""Encoders trained elsewhere: a static table of subwords, BERT-type transformers."""
