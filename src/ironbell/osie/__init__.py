"""Builds the in-memory OS (`build`), and holds what runs in it before the agent (`machine`)."""
