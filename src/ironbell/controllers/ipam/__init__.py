"""Addresses out of pools: for claims of Cluster API's IPAM contract, and for Hardware that has none."""
