"""Pages for browsers: each calls `operations` and writes HTML, as a command calls them and prints."""
