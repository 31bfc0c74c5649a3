package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

var (
	oldVersion = schema.GroupVersion{Group: "runtime.test.ironbell.dev", Version: "v1alpha1"}
	newVersion = schema.GroupVersion{Group: "runtime.test.ironbell.dev", Version: "v1beta1"}
)

// Rocket is the kind at its stored version.
type Rocket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RocketSpec   `json:"spec,omitempty"`
	Status            RocketStatus `json:"status,omitempty"`
}

// RocketSpec is what a rocket should be.
type RocketSpec struct {
	Fuel   string `json:"fuel,omitempty"`
	Stages int32  `json:"stages,omitempty"`
}

// RocketStatus is what a rocket is.
type RocketStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
}

// RocketList is several of them.
type RocketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rocket `json:"items"`
}

// OldRocket is the kind at its older version, where the fuel was called propellant.
type OldRocket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldRocketSpec `json:"spec,omitempty"`
	Status            RocketStatus  `json:"status,omitempty"`
}

// OldRocketSpec is what a rocket should be.
type OldRocketSpec struct {
	Propellant string `json:"propellant,omitempty"`
	Stages     int32  `json:"stages,omitempty"`
}

// OldRocketList is several of them.
type OldRocketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OldRocket `json:"items"`
}

// Hub says that other versions convert to and from this one.
func (*Rocket) Hub() {}

// ConvertTo makes the stored version of an old one.
func (r *OldRocket) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Rocket)
	to.ObjectMeta, to.Status = r.ObjectMeta, r.Status
	to.Spec = RocketSpec{Fuel: r.Spec.Propellant, Stages: r.Spec.Stages}
	return nil
}

// ConvertFrom makes the old version of a stored one.
func (r *OldRocket) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Rocket)
	r.ObjectMeta, r.Status = from.ObjectMeta, from.Status
	r.Spec = OldRocketSpec{Propellant: from.Spec.Fuel, Stages: from.Spec.Stages}
	return nil
}

// copied is a deep copy by way of JSON: enough for a test, where code would otherwise be generated.
func copied[T any](from *T) *T {
	data, err := json.Marshal(from)
	if err != nil {
		panic(err)
	}
	to := new(T)
	if err := json.Unmarshal(data, to); err != nil {
		panic(err)
	}
	return to
}

func (r *Rocket) DeepCopyObject() runtime.Object        { return copied(r) }
func (r *RocketList) DeepCopyObject() runtime.Object    { return copied(r) }
func (r *OldRocket) DeepCopyObject() runtime.Object     { return copied(r) }
func (r *OldRocketList) DeepCopyObject() runtime.Object { return copied(r) }

func addTypes(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(newVersion, &Rocket{}, &RocketList{})
	scheme.AddKnownTypeWithName(oldVersion.WithKind("Rocket"), &OldRocket{})
	scheme.AddKnownTypeWithName(oldVersion.WithKind("RocketList"), &OldRocketList{})
	metav1.AddToGroupVersion(scheme, newVersion)
	metav1.AddToGroupVersion(scheme, oldVersion)
}
