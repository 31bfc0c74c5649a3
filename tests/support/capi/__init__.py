"""Worlds for Cluster API's controllers, and upstream's managers."""
