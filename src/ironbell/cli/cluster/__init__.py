"""`ironbell cluster`: whole clusters of Cluster API, on any API that has it."""
