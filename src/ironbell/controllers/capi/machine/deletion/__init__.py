"""A Machine's deletion in steps: drain the Node, delete the host, the bootstrap data and the Node. Pure."""
