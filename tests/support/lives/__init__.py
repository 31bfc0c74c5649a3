"""Random lives of clusters, by seed, in virtual time: what is wanted, what goes wrong, and what must always hold."""
