"""Commands on the objects of an API."""
