"""The store: an append-only log of revisions on disk, the current state and recent history in memory."""
