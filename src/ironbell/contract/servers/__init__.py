"""Agreements of the engine and its front doors about servers: the identity of a machine, and its permissions."""
