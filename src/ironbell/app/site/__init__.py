"""`ironbell up`: one site on one machine: its data folder, its processes in order, and its settings."""
