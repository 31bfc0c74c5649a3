"""The verbs: each decides on the event loop in memory and hands what it decided to the store."""
