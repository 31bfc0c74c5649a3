"""Kubernetes' protocol buffers for the built-in kinds, in requests and responses."""
