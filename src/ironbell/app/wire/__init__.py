"""The processes that serve machines: `boot` and `workflow`, their sockets, and what they are configured with."""
