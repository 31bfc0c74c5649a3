"""What the engine and its front doors agree on about servers: who a machine is, and what may be done with it."""
