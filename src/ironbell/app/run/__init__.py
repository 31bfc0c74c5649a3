"""`ironbell run`: components against any Kubernetes API, and how their processes are supervised."""
