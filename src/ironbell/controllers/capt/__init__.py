"""The Tinkerbell provider of Cluster API (CAPT): clusters and machines on Hardware."""
