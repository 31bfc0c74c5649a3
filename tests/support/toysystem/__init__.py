"""A controller system as small as one can be, added to a copy of Ironbell by its tests."""
