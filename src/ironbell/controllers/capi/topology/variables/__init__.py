"""Variables of a ClusterClass: definitions, values, and those that every topology has."""
