"""Cluster API: Clusters, Machines, and the sets that create Machines."""
