"""Layer 3: the embedded Kubernetes API: store, schemas, verbs, garbage collection, and its HTTP face."""
