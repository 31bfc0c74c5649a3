"""Simulated clusters over sockets: HTTP, port-forwards over SPDY and WebSocket."""
