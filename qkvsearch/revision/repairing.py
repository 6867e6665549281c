"""What is damaged is derived again, where it can be."""
