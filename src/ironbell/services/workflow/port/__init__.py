"""The gRPC port for agents: its connections, the limits of the protocol, and the receipt of requests."""
