"""The controller of Clusters."""
