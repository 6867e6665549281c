"""What is shown beside hits: facets, and passages of their texts."""
