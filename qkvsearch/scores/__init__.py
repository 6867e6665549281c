"""The scores of heads: their components, fusion, top-k and candidates."""
