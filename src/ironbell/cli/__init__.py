"""Layer 7: the `ironbell` command."""
