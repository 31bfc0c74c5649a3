"""Layer 4: agreements between systems, such as the rules of netboot and the form of a claim on a server."""
