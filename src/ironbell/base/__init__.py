"""Layer 0: errors, clock, randomness, ids, quantities, labels, offloading. Imports nothing of ours."""
