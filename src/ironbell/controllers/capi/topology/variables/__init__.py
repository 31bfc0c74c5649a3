"""Variables of a ClusterClass: definitions, values, and the builtin variables of every topology."""
