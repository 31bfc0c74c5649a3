"""CustomResourceDefinitions: checked, compiled, served."""
