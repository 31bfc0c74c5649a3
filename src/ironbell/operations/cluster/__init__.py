"""Whole clusters of Cluster API: their tree and state, and what changes them."""
