"""Defaults and validation for objects of the Cluster API groups, over plain data."""
