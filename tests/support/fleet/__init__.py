"""Sites of many simulated servers, on which clusters are created, changed and deleted at random."""
