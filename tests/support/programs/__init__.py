"""Programs that tests need: built, found, or skipped for."""
