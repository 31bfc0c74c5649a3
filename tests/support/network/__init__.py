"""Networks of a test's own, and machines on them."""
