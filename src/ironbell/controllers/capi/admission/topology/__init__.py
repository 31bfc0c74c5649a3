"""Validation of a Cluster's topology: by itself, against its class, and against the old topology."""
