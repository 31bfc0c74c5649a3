"""What providers, control planes and bootstrap providers agree on about clusters and their Machines."""
