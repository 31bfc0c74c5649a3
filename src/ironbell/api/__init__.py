"""Layer 2: resource types, defaults, conversion, CRD generation, and the interface to any Kubernetes API."""
