"""HTTP/1.1 as the embedded API speaks it: connections, requests and responses; nothing of Kubernetes.

A server of its own instead of a framework's, because a request of the API costs less than such a framework takes for
it, and so does the start of the process.
"""
