"""Kubernetes' own kinds as the embedded API serves them."""
