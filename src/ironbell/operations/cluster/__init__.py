"""Clusters of Cluster API: their tree and state, and operations that change them."""
