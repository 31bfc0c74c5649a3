"""ClusterClass and the types of its parts."""
