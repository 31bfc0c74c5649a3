"""The controller of MachineSets: keeps the desired number of Machines of one template."""
