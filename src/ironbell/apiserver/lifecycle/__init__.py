"""Background work of the server: garbage collection, deletion of namespaces and definitions, expiry of events."""
