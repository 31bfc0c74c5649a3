"""Child processes of a site: how they are started, configured and watched, and what each reports about itself."""
