"""The topology of a Cluster as it is written: by itself, against its class, and against the previous one."""
