"""Functions and macros of CEL: the standard ones, and those that Kubernetes adds."""
