"""Child processes of a site: how they are started, configured, watched, and what each reports about itself."""
