"""Search and the course as files that any host serves: the page answers, by what it was given."""
