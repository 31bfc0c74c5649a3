"""The controllers of ClusterResourceSets: manifests from ConfigMaps and Secrets, applied in workload clusters."""
