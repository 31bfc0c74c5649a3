"""Ironbell: bare metal to Kubernetes."""
