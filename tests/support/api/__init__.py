"""Servers of the Kubernetes API, and clients that try them."""
