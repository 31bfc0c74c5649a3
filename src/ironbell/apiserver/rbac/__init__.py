"""Role-based access control by the objects of rbac.authorization.k8s.io."""
