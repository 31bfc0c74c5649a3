"""Sites with a lab, and the simulation itself."""
