"""Layer 6: which services and controllers run in which process, and how the processes are kept alive."""
