// Converts objects of Cluster API with upstream's own functions: JSON lines in, JSON lines out.
//
// Each line asks for one object in another version; the answer is the object or an error. API versions of references
// are GROUP/v1beta1 for every group, as if every provider followed the older contract.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsold "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addons "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapold "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrap "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplaneold "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplane "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	coreold "sigs.k8s.io/cluster-api/api/core/v1beta1"
	core "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamoldest "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamold "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipam "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimeold "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtime "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

type question struct {
	Up      bool            `json:"up"`
	Kind    string          `json:"kind"`
	Version string          `json:"version"`
	Object  json.RawMessage `json:"object"`
}

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

type converter func(up bool, data []byte) (any, error)

// pair makes a converter from both of upstream's functions.
func pair[Old, New any](
	up func(context.Context, *Old, *New) error, down func(context.Context, *New, *Old) error,
) converter {
	return func(upwards bool, data []byte) (any, error) {
		older, newer := new(Old), new(New)
		if upwards {
			if err := json.Unmarshal(data, older); err != nil {
				return nil, err
			}
			return newer, up(context.Background(), older, newer)
		}
		if err := json.Unmarshal(data, newer); err != nil {
			return nil, err
		}
		return older, down(context.Background(), newer, older)
	}
}

var converters = map[string]converter{
	"Cluster/v1beta1": pair[coreold.Cluster, core.Cluster](
		coreconversion.ConvertClusterV1Beta1ToHub, coreconversion.ConvertClusterHubToV1Beta1),
	"Machine/v1beta1": pair[coreold.Machine, core.Machine](
		coreconversion.ConvertMachineV1Beta1ToHub, coreconversion.ConvertMachineHubToV1Beta1),
	"MachineSet/v1beta1": pair[coreold.MachineSet, core.MachineSet](
		coreconversion.ConvertMachineSetV1Beta1ToHub, coreconversion.ConvertMachineSetHubToV1Beta1),
	"MachineDeployment/v1beta1": pair[coreold.MachineDeployment, core.MachineDeployment](
		coreconversion.ConvertMachineDeploymentV1Beta1ToHub, coreconversion.ConvertMachineDeploymentHubToV1Beta1),
	"MachinePool/v1beta1": pair[coreold.MachinePool, core.MachinePool](
		coreconversion.ConvertMachinePoolV1Beta1ToHub, coreconversion.ConvertMachinePoolHubToV1Beta1),
	"MachineHealthCheck/v1beta1": pair[coreold.MachineHealthCheck, core.MachineHealthCheck](
		coreconversion.ConvertMachineHealthCheckV1Beta1ToHub, coreconversion.ConvertMachineHealthCheckHubToV1Beta1),
	"MachineDrainRule/v1beta1": pair[coreold.MachineDrainRule, core.MachineDrainRule](
		coreconversion.ConvertMachineDrainRuleV1Beta1ToHub, coreconversion.ConvertMachineDrainRuleHubToV1Beta1),
	"ClusterClass/v1beta1": pair[coreold.ClusterClass, core.ClusterClass](
		coreconversion.ConvertClusterClassV1Beta1ToHub, coreconversion.ConvertClusterClassHubToV1Beta1),
	"KubeadmConfig/v1beta1": pair[bootstrapold.KubeadmConfig, bootstrap.KubeadmConfig](
		bootstrapconversion.ConvertKubeadmConfigV1Beta1ToHub, bootstrapconversion.ConvertKubeadmConfigHubToV1Beta1),
	"KubeadmConfigTemplate/v1beta1": pair[bootstrapold.KubeadmConfigTemplate, bootstrap.KubeadmConfigTemplate](
		bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub,
		bootstrapconversion.ConvertKubeadmConfigTemplateHubToV1Beta1),
	"KubeadmControlPlane/v1beta1": pair[controlplaneold.KubeadmControlPlane, controlplane.KubeadmControlPlane](
		controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub,
		controlplaneconversion.ConvertKubeadmControlPlaneHubToV1Beta1),
	"KubeadmControlPlaneTemplate/v1beta1": pair[
		controlplaneold.KubeadmControlPlaneTemplate, controlplane.KubeadmControlPlaneTemplate](
		controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub,
		controlplaneconversion.ConvertKubeadmControlPlaneTemplateHubToV1Beta1),
	"ClusterResourceSet/v1beta1": pair[addonsold.ClusterResourceSet, addons.ClusterResourceSet](
		coreconversion.ConvertClusterResourceSetV1Beta1ToHub, coreconversion.ConvertClusterResourceSetHubToV1Beta1),
	"ClusterResourceSetBinding/v1beta1": pair[addonsold.ClusterResourceSetBinding, addons.ClusterResourceSetBinding](
		coreconversion.ConvertClusterResourceSetBindingV1Beta1ToHub,
		coreconversion.ConvertClusterResourceSetBindingHubToV1Beta1),
	"IPAddress/v1alpha1": pair[ipamoldest.IPAddress, ipam.IPAddress](
		coreconversion.ConvertIPAddressV1Alpha1ToHub, coreconversion.ConvertIPAddressHubToV1Alpha1),
	"IPAddress/v1beta1": pair[ipamold.IPAddress, ipam.IPAddress](
		coreconversion.ConvertIPAddressV1Beta1ToHub, coreconversion.ConvertIPAddressHubToV1Beta1),
	"IPAddressClaim/v1alpha1": pair[ipamoldest.IPAddressClaim, ipam.IPAddressClaim](
		coreconversion.ConvertIPAddressClaimV1Alpha1ToHub, coreconversion.ConvertIPAddressClaimHubToV1Alpha1),
	"IPAddressClaim/v1beta1": pair[ipamold.IPAddressClaim, ipam.IPAddressClaim](
		coreconversion.ConvertIPAddressClaimV1Beta1ToHub, coreconversion.ConvertIPAddressClaimHubToV1Beta1),
	"ExtensionConfig/v1alpha1": pair[runtimeold.ExtensionConfig, runtime.ExtensionConfig](
		coreconversion.ConvertExtensionConfigV1Alpha1ToHub, coreconversion.ConvertExtensionConfigHubToV1Alpha1),
}

func contractVersion(_ context.Context, kind schema.GroupKind) (string, error) {
	return kind.Group + "/v1beta1", nil
}

// answered answers one line; a panic of upstream's is an error like others.
func answered(line []byte) (found answer) {
	defer func() {
		if cause := recover(); cause != nil {
			found = answer{Error: fmt.Sprintf("panic: %v", cause)}
		}
	}()
	asked := question{}
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	convert, known := converters[asked.Kind+"/"+asked.Version]
	if !known {
		return answer{Error: fmt.Sprintf("no converter for %s/%s", asked.Kind, asked.Version)}
	}
	object, err := convert(asked.Up, asked.Object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Object: object}
}

func main() {
	coreconversion.SetAPIVersionGetter(contractVersion)
	controlplaneconversion.SetAPIVersionGetter(contractVersion)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := answers.Encode(answered(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
