"""Backups of a site: the archive, the restore, and the rotation of the key that encrypts Secrets."""
