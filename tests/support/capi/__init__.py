"""Worlds and sites for Cluster API's controllers, upstream's managers, and inputs generated from seeds."""
