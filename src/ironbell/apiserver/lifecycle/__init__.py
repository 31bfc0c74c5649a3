"""What the server does by itself: garbage collection, the ends of namespaces and definitions, expiry of events."""
