"""`ironbell up` and other processes of ours as tests start, kill and watch them."""
