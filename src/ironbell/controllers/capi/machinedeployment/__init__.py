"""The controller of MachineDeployments: MachineSets of one template after the other."""
