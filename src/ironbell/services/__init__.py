"""Layer 5: servers toward machines. They are independent of each other and answer from memory."""
