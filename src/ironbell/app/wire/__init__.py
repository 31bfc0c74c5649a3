"""The processes that serve machines: `boot` and `workflow`, their sockets, and their configuration."""
