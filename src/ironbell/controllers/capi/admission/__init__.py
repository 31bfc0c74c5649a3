"""What is filled in and what is refused when objects of this group are written, over plain data."""
