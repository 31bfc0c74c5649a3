"""The controller of MachineSets: as many Machines of one template as are wanted."""
