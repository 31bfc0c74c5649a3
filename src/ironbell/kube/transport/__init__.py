"""Connections to API servers: from a kubeconfig or a pod, with credentials, TLS, HTTP and port-forwards."""
