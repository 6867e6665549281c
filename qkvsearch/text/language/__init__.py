"""What differs from language to language and from script to script."""
