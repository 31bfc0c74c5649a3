"""Draining: the order in which the pods of a node leave it, and the messages about it. Pure."""
