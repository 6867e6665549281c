"""What a log of searches and clicks says: of queries, of hits, and of how good a search is."""
