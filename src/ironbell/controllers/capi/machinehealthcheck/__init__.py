"""The MachineHealthCheck controller."""
