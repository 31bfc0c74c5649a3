"""Layer 5: servers for machines. They are independent of each other and answer from memory."""
