"""The Machine controller."""
