"""Well-known names in the groups of Cluster API: labels, annotations, taints, finalizers.

Other programs look for these, so they are spelt as upstream spells them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2, api/controlplane/kubeadm/v1beta2, cmd/clusterctl/api/v1alpha3.
"""

from __future__ import annotations

from typing import Final

# Labels.

LABEL_CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""On every object of a cluster: its Cluster's name."""

LABEL_CONTROL_PLANE: Final = "cluster.x-k8s.io/control-plane"
"""On a control plane Machine and its objects, with an empty value."""

LABEL_CONTROL_PLANE_NAME: Final = "cluster.x-k8s.io/control-plane-name"
"""On a control plane Machine: name, or hash of the name, of its KubeadmControlPlane."""

LABEL_SET_NAME: Final = "cluster.x-k8s.io/set-name"
"""On a Machine: name, or hash of the name, of its MachineSet."""

LABEL_DEPLOYMENT_NAME: Final = "cluster.x-k8s.io/deployment-name"
"""On a Machine and its MachineSet: name of the MachineDeployment."""

LABEL_POOL_NAME: Final = "cluster.x-k8s.io/pool-name"
"""On a Machine: name, or hash of the name, of its MachinePool."""

LABEL_MACHINE_TEMPLATE_HASH: Final = "machine-template-hash"
"""On a MachineSet of a MachineDeployment and its Machines: which template they are from."""

LABEL_TOPOLOGY_OWNED: Final = "topology.cluster.x-k8s.io/owned"
"""On everything that a managed topology made, with an empty value."""

LABEL_TOPOLOGY_DEPLOYMENT_NAME: Final = "topology.cluster.x-k8s.io/deployment-name"
"""On objects of a MachineDeployment of a topology: its name there."""

LABEL_TOPOLOGY_POOL_NAME: Final = "topology.cluster.x-k8s.io/pool-name"
"""On objects of a MachinePool of a topology: its name there."""

LABEL_PROVIDER: Final = "cluster.x-k8s.io/provider"
"""On definitions and parts of a provider: which one."""

LABEL_CONTRACT_PREFIX: Final = "cluster.x-k8s.io/"
"""On a definition, before a contract's version: the API versions that follow the contract, joined by `_`."""

LABEL_AGGREGATE_TO_MANAGER: Final = "cluster.x-k8s.io/aggregate-to-manager"
"""On a ClusterRole, with the value `true`: added to what the core controllers may do."""

LABEL_INTERRUPTIBLE: Final = "cluster.x-k8s.io/interruptible"
"""On a Node whose machine may be taken away at any time, with an empty value."""

LABEL_DRAIN: Final = "cluster.x-k8s.io/drain"
"""On a Pod: `skip` or `wait-completed` when its Node is drained."""

LABEL_CLUSTERCTL: Final = "clusterctl.cluster.x-k8s.io"
"""On everything that clusterctl installed, with an empty value."""

LABEL_CLUSTERCTL_CORE: Final = "clusterctl.cluster.x-k8s.io/core"
"""On what clusterctl itself needs: `inventory` or `cert-manager`."""

LABEL_MOVE: Final = "clusterctl.cluster.x-k8s.io/move"
"""On an object or definition: moves along with clusters."""

LABEL_MOVE_HIERARCHY: Final = "clusterctl.cluster.x-k8s.io/move-hierarchy"
"""On an object or definition: moves along with everything that it owns."""


# Annotations.

ANNOTATION_PAUSED: Final = "cluster.x-k8s.io/paused"
"""On any object: leave it alone."""

ANNOTATION_MANAGED_BY: Final = "cluster.x-k8s.io/managed-by"
"""On an infrastructure object: somebody else looks after it."""

ANNOTATION_DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
"""On a Machine: it is deleted first when there are too many."""

ANNOTATION_DISABLE_MACHINE_CREATE: Final = "cluster.x-k8s.io/disable-machine-create"
"""On a MachineSet, with the value `true`: make no Machines."""

ANNOTATION_CLONED_FROM_NAME: Final = "cluster.x-k8s.io/cloned-from-name"
"""On an object made from a template: the template's name."""

ANNOTATION_CLONED_FROM_GROUP_KIND: Final = "cluster.x-k8s.io/cloned-from-groupkind"
"""On an object made from a template: the template's kind and group, as KIND.GROUP."""

ANNOTATION_SKIP_REMEDIATION: Final = "cluster.x-k8s.io/skip-remediation"
"""On a Machine: never remediate it."""

ANNOTATION_REMEDIATE_MACHINE: Final = "cluster.x-k8s.io/remediate-machine"
"""On a Machine: remediate it now."""

ANNOTATION_REPLICAS_MANAGED_BY: Final = "cluster.x-k8s.io/replicas-managed-by"
"""On a MachinePool: something else decides how many."""

ANNOTATION_AUTOSCALER_MIN_SIZE: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
"""On a set of Machines: least number for the autoscaler."""

ANNOTATION_AUTOSCALER_MAX_SIZE: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
"""On a set of Machines: greatest number for the autoscaler."""

ANNOTATION_SKIP_PREFLIGHT_CHECKS: Final = "machineset.cluster.x-k8s.io/skip-preflight-checks"
"""On a MachineSet: preflight checks that are left out, joined by commas, or `All`."""

ANNOTATION_EXCLUDE_NODE_DRAINING: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
"""On a Machine: do not drain its Node."""

ANNOTATION_EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
"""On a Machine: do not wait for its Node's volumes."""

ANNOTATION_CERTIFICATES_EXPIRY: Final = "machine.cluster.x-k8s.io/certificates-expiry"
"""On a Machine or KubeadmConfig: when its certificates end."""

PREFIX_PRE_DRAIN_HOOK: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
"""Begin of annotations on a Machine that hold up the drain; the value is the owner."""

PREFIX_PRE_TERMINATE_HOOK: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
"""Begin of annotations on a Machine that hold up the deletion of its infrastructure; the value is the owner."""

ANNOTATION_REVISION: Final = "machinedeployment.clusters.x-k8s.io/revision"
"""On a MachineDeployment and its MachineSets: number of the template."""

ANNOTATION_REVISION_HISTORY: Final = "machinedeployment.clusters.x-k8s.io/revision-history"
"""On a MachineSet: earlier numbers of its template, joined by commas."""

ANNOTATION_DESIRED_REPLICAS: Final = "machinedeployment.clusters.x-k8s.io/desired-replicas"
"""On a MachineSet: replicas of its MachineDeployment."""

ANNOTATION_MAX_REPLICAS: Final = "machinedeployment.clusters.x-k8s.io/max-replicas"
"""On a MachineSet: replicas of its MachineDeployment with those that may be too many."""

ANNOTATION_SKIP_COREDNS: Final = "controlplane.cluster.x-k8s.io/skip-coredns"
"""On a KubeadmControlPlane: leave CoreDNS alone."""

ANNOTATION_SKIP_KUBE_PROXY: Final = "controlplane.cluster.x-k8s.io/skip-kube-proxy"
"""On a KubeadmControlPlane: leave kube-proxy alone."""

ANNOTATION_REMEDIATION_IN_PROGRESS: Final = "controlplane.cluster.x-k8s.io/remediation-in-progress"
"""On a KubeadmControlPlane: JSON of the remediation that goes on."""

ANNOTATION_REMEDIATION_FOR: Final = "controlplane.cluster.x-k8s.io/remediation-for"
"""On a control plane Machine: JSON of the remediation that it replaces another for."""

ANNOTATION_KUBEADM_CLUSTER_CONFIGURATION: Final = "controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration"
"""On a control plane Machine of older releases; taken away."""

ANNOTATION_HOLD_UPGRADE_SEQUENCE: Final = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
"""On workers of a topology: they and all after them are not upgraded yet."""

ANNOTATION_DEFER_UPGRADE: Final = "topology.cluster.x-k8s.io/defer-upgrade"
"""On workers of a topology: they are not upgraded yet."""

ANNOTATION_UPGRADE_CONCURRENCY: Final = "topology.cluster.x-k8s.io/upgrade-concurrency"
"""On a Cluster: how many groups of workers are upgraded at a time."""

ANNOTATION_UPGRADE_STEP: Final = "topology.internal.cluster.x-k8s.io/upgrade-step"
"""On a Cluster: version of the step that goes on."""

ANNOTATION_TOPOLOGY_DRY_RUN: Final = "topology.cluster.x-k8s.io/dry-run"
"""On an object in a dry run of the topology."""

ANNOTATION_UNSAFE_CLASS_NAME: Final = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check"
"""On a Cluster: changes of the class are not checked."""

ANNOTATION_UNSAFE_VERSION: Final = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"
"""On a Cluster: changes of the version are not checked."""

ANNOTATION_UPDATE_IN_PROGRESS: Final = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
"""On a Machine: it is being updated in place."""

ANNOTATION_CONVERSION_DATA: Final = "cluster.x-k8s.io/conversion-data"
"""On an object in an older version: JSON of what that version cannot say."""

ANNOTATION_BLOCK_MOVE: Final = "clusterctl.cluster.x-k8s.io/block-move"
"""On any object: a move waits."""

ANNOTATION_DELETE_FOR_MOVE: Final = "clusterctl.cluster.x-k8s.io/delete-for-move"
"""On an object that is deleted because it moved."""

ANNOTATION_CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""On a Node: its Cluster."""

ANNOTATION_CLUSTER_NAMESPACE: Final = "cluster.x-k8s.io/cluster-namespace"
"""On a Node: the namespace of its Cluster."""

ANNOTATION_MACHINE: Final = "cluster.x-k8s.io/machine"
"""On a Node: its Machine."""

ANNOTATION_OWNER_KIND: Final = "cluster.x-k8s.io/owner-kind"
"""On a Node: kind of its Machine's controller."""

ANNOTATION_OWNER_NAME: Final = "cluster.x-k8s.io/owner-name"
"""On a Node: name of its Machine's controller."""

ANNOTATION_LABELS_FROM_MACHINE: Final = "cluster.x-k8s.io/labels-from-machine"
"""On a Node: labels that its Machine gave it, joined by commas."""

ANNOTATION_ANNOTATIONS_FROM_MACHINE: Final = "cluster.x-k8s.io/annotations-from-machine"
"""On a Node: annotations that its Machine gave it, joined by commas."""

ANNOTATION_TAINTS_FROM_MACHINE: Final = "cluster.x-k8s.io/taints-from-machine"
"""On a Node: taints that its Machine gave it, each as KEY:EFFECT, joined by commas."""


# Domains of labels and annotations that a Machine hands to its Node.

MANAGED_NODE_DOMAIN: Final = "node.cluster.x-k8s.io"
NODE_RESTRICTION_LABEL_DOMAIN: Final = "node-restriction.kubernetes.io"
NODE_ROLE_LABEL_PREFIX: Final = "node-role.kubernetes.io"

# Keys of taints.

TAINT_UNINITIALIZED: Final = "node.cluster.x-k8s.io/uninitialized"
"""On a new worker Node until it has its labels (NoSchedule)."""

TAINT_OUTDATED_REVISION: Final = "node.cluster.x-k8s.io/outdated-revision"
"""On a Node whose Machine is about to be replaced (PreferNoSchedule)."""


# Finalizers.

FINALIZER_CLUSTER: Final = "cluster.cluster.x-k8s.io"
FINALIZER_MACHINE: Final = "machine.cluster.x-k8s.io"
FINALIZER_MACHINE_SET: Final = "cluster.x-k8s.io/machineset"
FINALIZER_MACHINE_DEPLOYMENT: Final = "cluster.x-k8s.io/machinedeployment"
FINALIZER_MACHINE_POOL: Final = "machinepool.cluster.x-k8s.io"
FINALIZER_MACHINE_SET_TOPOLOGY: Final = "machineset.topology.cluster.x-k8s.io"
FINALIZER_MACHINE_DEPLOYMENT_TOPOLOGY: Final = "machinedeployment.topology.cluster.x-k8s.io"
FINALIZER_CLUSTER_RESOURCE_SET: Final = "addons.cluster.x-k8s.io"

Labels = tuple[tuple[str, str], ...]

_CONTRACTS: Final[Labels] = (
    *((f"{LABEL_CONTRACT_PREFIX}{version}", version) for version in ("v1beta1", "v1beta2")),
    (LABEL_CLUSTERCTL, ""),  # what clusterctl adds when it installs: without it `clusterctl move` sees no object
)

CORE_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "cluster-api"))
BOOTSTRAP_KUBEADM_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "bootstrap-kubeadm"))
CONTROL_PLANE_KUBEADM_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "control-plane-kubeadm"))
CLUSTERCTL_LABELS: Final[Labels] = ((LABEL_CLUSTERCTL, ""), (LABEL_CLUSTERCTL_CORE, "inventory"))
