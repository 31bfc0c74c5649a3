"""Worlds for the provisioning of servers: racks, owners of servers, and installations."""
