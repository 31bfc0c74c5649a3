"""Layer 3: drivers for BMCs. `driver` is what they have in common; one package per protocol."""
