"""State that controllers read: Informers with their Stores and Indexes, the View of each controller, and Facts."""
