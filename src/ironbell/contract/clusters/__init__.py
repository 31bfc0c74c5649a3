"""Contracts of infrastructure, control plane and bootstrap providers about clusters and their Machines."""
