"""`ironbell up` and its other commands as users run them: started, watched, killed, upgraded and pivoted."""
