"""The simulated infrastructure provider: DevCluster and DevMachine, and their controllers."""
