"""Addresses from pools: for claims of Cluster API's IPAM contract, and for Hardware without an address."""
