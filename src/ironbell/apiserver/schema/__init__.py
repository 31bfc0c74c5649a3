"""Structural schemas of resources, compiled once into closures: pruning, defaults, validation, rules."""
