"""ClusterClasses as they are written: their templates, variables and patches, and the Clusters that use them."""
