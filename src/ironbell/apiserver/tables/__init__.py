"""Tables: how kubectl prints the objects of each kind."""
