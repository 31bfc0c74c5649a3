"""Runtime of controllers: the Manager, one Controller with its Queue for each reconciler, leader election, Events."""
