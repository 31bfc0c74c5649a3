"""Conversion between the versions of Cluster API's kinds: pure functions over plain data.

Each kind has a list of rules: where a field is in the older version and where in the stored one. Everything else
is the same in both. A value that the older version cannot hold travels in an annotation, so that an object read and
written in the older version loses nothing.

Source: kubernetes-sigs/cluster-api: core/webhooks/conversion, bootstrap/kubeadm/webhooks/conversion,
controlplane/kubeadm/webhooks/conversion, api/*/v1beta1/conversion.go.
"""
