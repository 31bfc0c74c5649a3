"""The conditions of a Machine, each from what is known. Pure."""
