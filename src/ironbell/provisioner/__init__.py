"""Layer 4: what is decided about a server, whichever front door asks. Pure functions on Hardware and Workflow."""
