"""Layer 4: what several systems share by agreement, such as who may netboot and what a claim on a server is."""
