"""Cluster API: Clusters, Machines, and what makes Machines."""
