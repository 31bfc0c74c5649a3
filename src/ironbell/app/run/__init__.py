"""`ironbell run`: components against any Kubernetes API, and the supervision of their processes."""
