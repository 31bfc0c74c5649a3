"""Layer 4: access to workload clusters: their API, their nodes, their etcd."""
