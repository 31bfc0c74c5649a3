"""Aside: the demonstration, from powered-off virtual servers to a Kubernetes cluster or a login prompt."""
