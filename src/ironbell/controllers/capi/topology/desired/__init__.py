"""What a topology's objects are to be like, before and after the patches of its class."""
