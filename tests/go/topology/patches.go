package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster/patches"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
)

type object map[string]interface{}

type worker struct {
	Object         json.RawMessage `json:"object,omitempty"`
	Bootstrap      object          `json:"bootstrap"`
	Infrastructure object          `json:"infrastructure"`
}

// patchRequest has the templates of a class, and what a topology is to have before patches.
type patchRequest struct {
	InfrastructureCluster object            `json:"infrastructureCluster"`
	ControlPlane          object            `json:"controlPlane"`
	ControlPlaneMachine   object            `json:"controlPlaneMachine"`
	Deployments           map[string]worker `json:"deployments"`
	Pools                 map[string]worker `json:"pools"`
	Desired               desiredState      `json:"desired"`
}

type desiredState struct {
	InfrastructureCluster object            `json:"infrastructureCluster"`
	ControlPlane          object            `json:"controlPlane"`
	ControlPlaneMachine   object            `json:"controlPlaneMachine,omitempty"`
	Deployments           map[string]worker `json:"deployments,omitempty"`
	Pools                 map[string]worker `json:"pools,omitempty"`
}

func free(one object) *unstructured.Unstructured {
	if one == nil {
		return nil
	}
	// a copy of its own: workers of one class share their templates
	body, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(body); err != nil {
		panic(err)
	}
	return made
}

func blueprint(asked *request) *scope.ClusterBlueprint {
	from := asked.Patch
	made := &scope.ClusterBlueprint{
		Topology:                      asked.Cluster.Spec.Topology,
		ClusterClass:                  asked.Class,
		InfrastructureClusterTemplate: free(from.InfrastructureCluster),
		ControlPlane: &scope.ControlPlaneBlueprint{
			Template:                      free(from.ControlPlane),
			InfrastructureMachineTemplate: free(from.ControlPlaneMachine),
		},
		MachineDeployments: map[string]*scope.MachineDeploymentBlueprint{},
		MachinePools:       map[string]*scope.MachinePoolBlueprint{},
	}
	for name, one := range from.Deployments {
		made.MachineDeployments[name] = &scope.MachineDeploymentBlueprint{
			BootstrapTemplate: free(one.Bootstrap), InfrastructureMachineTemplate: free(one.Infrastructure),
		}
	}
	for name, one := range from.Pools {
		made.MachinePools[name] = &scope.MachinePoolBlueprint{
			BootstrapTemplate: free(one.Bootstrap), InfrastructureMachinePoolTemplate: free(one.Infrastructure),
		}
	}
	return made
}

func patched(asked *request, said *answer) error {
	from := asked.Patch.Desired
	desired := &scope.ClusterState{
		Cluster:               asked.Cluster,
		InfrastructureCluster: free(from.InfrastructureCluster),
		ControlPlane: &scope.ControlPlaneState{
			Object: free(from.ControlPlane), InfrastructureMachineTemplate: free(from.ControlPlaneMachine),
		},
		MachineDeployments: scope.MachineDeploymentsStateMap{},
		MachinePools:       scope.MachinePoolsStateMap{},
	}
	for name, one := range from.Deployments {
		made := &clusterv1.MachineDeployment{}
		if err := json.Unmarshal(one.Object, made); err != nil {
			return err
		}
		desired.MachineDeployments[name] = &scope.MachineDeploymentState{
			Object: made, BootstrapTemplate: free(one.Bootstrap), InfrastructureMachineTemplate: free(one.Infrastructure),
		}
	}
	for name, one := range from.Pools {
		made := &clusterv1.MachinePool{}
		if err := json.Unmarshal(one.Object, made); err != nil {
			return err
		}
		desired.MachinePools[name] = &scope.MachinePoolState{
			Object: made, BootstrapObject: free(one.Bootstrap), InfrastructureMachinePoolObject: free(one.Infrastructure),
		}
	}
	known, err := client(asked)
	if err != nil {
		return err
	}
	if err := patches.NewEngine(known, nil).Apply(context.Background(), blueprint(asked), desired); err != nil {
		return err
	}
	said.Desired = &desiredState{
		InfrastructureCluster: desired.InfrastructureCluster.Object,
		ControlPlane:          desired.ControlPlane.Object.Object,
		Deployments:           map[string]worker{},
		Pools:                 map[string]worker{},
	}
	if desired.ControlPlane.InfrastructureMachineTemplate != nil {
		said.Desired.ControlPlaneMachine = desired.ControlPlane.InfrastructureMachineTemplate.Object
	}
	for name, one := range desired.MachineDeployments {
		said.Desired.Deployments[name] = worker{
			Bootstrap: one.BootstrapTemplate.Object, Infrastructure: one.InfrastructureMachineTemplate.Object,
		}
	}
	for name, one := range desired.MachinePools {
		said.Desired.Pools[name] = worker{
			Bootstrap: one.BootstrapObject.Object, Infrastructure: one.InfrastructureMachinePoolObject.Object,
		}
	}
	return nil
}
