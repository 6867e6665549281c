"""The API: one module of routes for each group of questions, and what they share."""
