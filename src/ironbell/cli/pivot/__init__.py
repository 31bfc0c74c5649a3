"""`ironbell pivot`: clusters change their management cluster."""
