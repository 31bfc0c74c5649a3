"""Draining: which pods of a node go, in which order, and what is told of it. Pure."""
