"""What commands, pages and the operator do alike, above the wiring and below whoever parses and prints."""
