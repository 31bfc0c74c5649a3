"""Clusters by kubeadm: in memory, and real ones on namespace machines."""
