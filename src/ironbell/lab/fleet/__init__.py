"""Simulated servers: no hardware and no packets of firmware, but BMCs, agents and installed systems that speak the real
protocols to the real services. `process` of the simulation runs them beside simulated clusters; replay on virtual time
uses the same servers.
"""
