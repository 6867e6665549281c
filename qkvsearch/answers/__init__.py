"""What each question is made of: a query's heads, a user's history, an item's neighbours."""
