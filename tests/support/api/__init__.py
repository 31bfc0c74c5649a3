"""Servers of the Kubernetes API, clients that try them, and records of what they answered."""
