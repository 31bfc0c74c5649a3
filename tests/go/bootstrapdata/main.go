// bootstrapdata renders bootstrap data with Cluster API's own packages: one JSON request per line in, one answer out.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/blang/semver/v4"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
)

type pair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

type request struct {
	Role         string                        `json:"role"`
	Version      string                        `json:"version"`
	Spec         bootstrapv1.KubeadmConfigSpec `json:"spec"`
	Facts        map[string]string             `json:"facts"`
	Certificates map[string]pair               `json:"certificates"`
}

type answer struct {
	Data     string `json:"data"`
	Warnings string `json:"warnings"`
	Error    string `json:"error"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked request
		said := answer{}
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			said.Error = "request: " + err.Error()
		} else if data, warnings, err := render(&asked); err != nil {
			said.Error = err.Error()
		} else {
			said = answer{Data: string(data), Warnings: warnings}
		}
		if err := out.Encode(said); err != nil {
			panic(err)
		}
	}
}

func render(asked *request) ([]byte, string, error) {
	version, err := semver.ParseTolerant(asked.Version)
	if err != nil {
		return nil, "", err
	}
	spec := &asked.Spec
	base := cloudinit.BaseUserData{
		AdditionalFiles:     spec.Files,
		BootCommands:        spec.BootCommands,
		PreKubeadmCommands:  spec.PreKubeadmCommands,
		PostKubeadmCommands: spec.PostKubeadmCommands,
		Users:               spec.Users,
		Mounts:              spec.Mounts,
		KubernetesVersion:   version,
	}
	if spec.NTP.IsDefined() {
		base.NTP = &spec.NTP
	}
	if spec.DiskSetup.IsDefined() {
		base.DiskSetup = &spec.DiskSetup
	}
	if spec.Verbosity != nil {
		text, _ := json.Marshal(*spec.Verbosity)
		base.KubeadmVerbosity = "--v " + string(text)
	}
	switch asked.Role {
	case "init":
		return initialise(asked, base, version)
	case "control plane":
		return joinControlPlane(asked, base, version)
	default:
		return joinWorker(asked, base, version)
	}
}

func initialise(asked *request, base cloudinit.BaseUserData, version semver.Version) ([]byte, string, error) {
	spec := &asked.Spec
	additional := &upstream.AdditionalData{
		ControlPlaneComponentHealthCheckSeconds: spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds,
	}
	for name, target := range map[string]**string{
		"name":               &additional.ClusterName,
		"kubernetes_version": &additional.KubernetesVersion,
		"dns_domain":         &additional.DNSDomain,
		"service_subnet":     &additional.ServiceSubnet,
		"pod_subnet":         &additional.PodSubnet,
	} {
		if value := asked.Facts[name]; value != "" {
			*target = &value
		}
	}
	if spec.ClusterConfiguration.ControlPlaneEndpoint == "" {
		spec.ClusterConfiguration.ControlPlaneEndpoint = asked.Facts["control_plane_endpoint"]
	}
	cluster, err := types.MarshalClusterConfigurationForVersion(&spec.ClusterConfiguration, version, additional)
	if err != nil {
		return nil, "", err
	}
	node, err := types.MarshalInitConfigurationForVersion(&spec.InitConfiguration, version)
	if err != nil {
		return nil, "", err
	}
	input := &cloudinit.ControlPlaneInput{
		BaseUserData:         base,
		Certificates:         filled(secret.NewCertificatesForInitialControlPlane(&spec.ClusterConfiguration), asked),
		ClusterConfiguration: cluster,
		InitConfiguration:    node,
	}
	if spec.Format == bootstrapv1.Ignition {
		return ignition.NewInitControlPlane(&ignition.ControlPlaneInput{ControlPlaneInput: input, Ignition: &spec.Ignition})
	}
	data, err := cloudinit.NewInitControlPlane(input)
	return data, "", err
}

func joinControlPlane(asked *request, base cloudinit.BaseUserData, version semver.Version) ([]byte, string, error) {
	spec := &asked.Spec
	node, err := types.MarshalJoinConfigurationForVersion(&spec.JoinConfiguration, version)
	if err != nil {
		return nil, "", err
	}
	input := &cloudinit.ControlPlaneJoinInput{
		BaseUserData:      base,
		Certificates:      filled(secret.NewControlPlaneJoinCerts(&spec.ClusterConfiguration), asked),
		JoinConfiguration: node,
	}
	if spec.Format == bootstrapv1.Ignition {
		return ignition.NewJoinControlPlane(&ignition.ControlPlaneJoinInput{ControlPlaneJoinInput: input, Ignition: &spec.Ignition})
	}
	data, err := cloudinit.NewJoinControlPlane(input)
	return data, "", err
}

func joinWorker(asked *request, base cloudinit.BaseUserData, version semver.Version) ([]byte, string, error) {
	spec := &asked.Spec
	node, err := types.MarshalJoinConfigurationForVersion(&spec.JoinConfiguration, version)
	if err != nil {
		return nil, "", err
	}
	input := &cloudinit.NodeInput{BaseUserData: base, JoinConfiguration: node}
	if spec.Format == bootstrapv1.Ignition {
		return ignition.NewNode(&ignition.NodeInput{NodeInput: input, Ignition: &spec.Ignition})
	}
	data, err := cloudinit.NewNode(input)
	return data, "", err
}

func filled(certificates secret.Certificates, asked *request) secret.Certificates {
	for _, one := range certificates {
		if found, ok := asked.Certificates[string(one.Purpose)]; ok {
			one.KeyPair = &certs.KeyPair{Cert: []byte(found.Certificate), Key: []byte(found.Key)}
		}
	}
	return certificates
}
