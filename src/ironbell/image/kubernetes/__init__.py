"""Makes a Debian image a Kubernetes node: programs, units, and container images already in containerd's store."""
