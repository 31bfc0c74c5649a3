"""Clusters created by kubeadm, in memory and on namespace machines, and the packages and specs that they need."""
