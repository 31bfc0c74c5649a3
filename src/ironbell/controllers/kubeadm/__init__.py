"""Cluster API's kubeadm providers: bootstrap data (also called CABPK) and control planes (CACPK)."""
