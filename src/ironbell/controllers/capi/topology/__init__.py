"""Managed topologies: Clusters whose objects are computed from a ClusterClass."""
