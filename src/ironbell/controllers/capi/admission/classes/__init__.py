"""Admission of ClusterClasses: their templates, variables and patches, and the Clusters that use them."""
