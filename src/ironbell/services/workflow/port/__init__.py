"""The gRPC port toward agents: its connections, the protocol's limits, and who may call."""
