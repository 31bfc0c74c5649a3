"""How an API server is reached: a Connection from a kubeconfig or a pod, credentials, TLS, HTTP, port-forwards."""
