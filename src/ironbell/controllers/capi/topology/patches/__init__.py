"""Patches of a ClusterClass: templates changed by the values of variables."""
