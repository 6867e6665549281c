"""The heads of search and recommendation: what each one stores, scores and explains."""
