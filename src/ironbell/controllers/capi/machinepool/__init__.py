"""The controller of MachinePools: a group of Machines that the infrastructure scales itself."""
