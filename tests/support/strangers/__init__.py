"""Providers of Cluster API that are not ours, and know nothing of how ours are made: one for each contract."""
