"""The parts of Go's standard library that templates reach: JSON, time, regular expressions, printing."""
