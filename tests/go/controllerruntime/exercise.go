package main

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// exercise is what users of the operator do, and what they see.
func exercise(ctx context.Context, manager ctrl.Manager, direct client.Client, namespace string) {
	key := client.ObjectKey{Namespace: namespace, Name: "one"}
	cached := manager.GetClient()
	mutated(ctx, direct, key)
	reconciled(ctx, cached, direct, key)
	selected(ctx, cached, direct, key)
	validated(ctx, direct, key)
	converted(ctx, cached, direct, namespace)
	deleted(ctx, cached, direct, key)
}

func mutated(ctx context.Context, direct client.Client, key client.ObjectKey) {
	trial := &Rocket{ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: key.Namespace}}
	// A webhook is called as soon as the server has seen its configuration: shortly after, not at once.
	eventually("dry run goes through the webhook", func() bool {
		attempt := trial.DeepCopyObject().(*Rocket)
		return direct.Create(ctx, attempt, client.DryRunAll) == nil && attempt.Spec.Fuel == "kerosene"
	})
	require("dry run stores nothing", apierrors.IsNotFound(direct.Get(ctx, client.ObjectKeyFromObject(trial), trial)))
	rocket := &Rocket{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Spec: RocketSpec{Stages: 1}}
	check("rocket", direct.Create(ctx, rocket))
	require("webhook sets the default", rocket.Spec.Fuel == "kerosene")
}

func reconciled(ctx context.Context, cached, direct client.Client, key client.ObjectKey) {
	rocket := &Rocket{}
	eventually("reconciled", func() bool {
		return cached.Get(ctx, key, rocket) == nil && meta.IsStatusConditionTrue(rocket.Status.Conditions, "Ready")
	})
	require("finalizer", len(rocket.Finalizers) == 1)
	require("status leaves the generation", rocket.Generation == 1 && rocket.Status.ObservedGeneration == 1)
	child := &corev1.ConfigMap{}
	eventually("owned object", func() bool { return cached.Get(ctx, key, child) == nil })
	require("owner", metav1.IsControlledBy(child, rocket) && child.Data["fuel"] == "kerosene")
	child.Data["fuel"] = "tampered"
	check("owned object changed", direct.Update(ctx, child))
	eventually("what is owned is put right", func() bool {
		return direct.Get(ctx, key, child) == nil && child.Data["fuel"] == "kerosene"
	})
	check("owned object deleted", direct.Delete(ctx, child))
	eventually("what is owned comes again", func() bool { return direct.Get(ctx, key, &corev1.ConfigMap{}) == nil })
	before := rocket.DeepCopyObject().(*Rocket)
	rocket.Spec.Fuel = "methane"
	check("patch", direct.Patch(ctx, rocket, client.MergeFrom(before)))
	eventually("a change is reconciled", func() bool {
		found := &Rocket{}
		return direct.Get(ctx, key, found) == nil && found.Generation == 2 && found.Status.ObservedGeneration == 2 &&
			direct.Get(ctx, key, child) == nil && child.Data["fuel"] == "methane"
	})
}

func selected(ctx context.Context, cached, direct client.Client, key client.ObjectKey) {
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: key.Namespace}}
	check("object without the label", direct.Create(ctx, other))
	found := &corev1.ConfigMapList{}
	check("list from the cache", cached.List(ctx, found, client.InNamespace(key.Namespace)))
	require("the cache has what its selector takes", len(found.Items) == 1 && found.Items[0].Name == key.Name)
	require("and nothing else", apierrors.IsNotFound(cached.Get(ctx, client.ObjectKeyFromObject(other), other)))
	heads := &metav1.PartialObjectMetadataList{}
	heads.SetGroupVersionKind(newVersion.WithKind("RocketList"))
	check("metadata from the cache", cached.List(ctx, heads, client.InNamespace(key.Namespace)))
	require("metadata is found", len(heads.Items) == 1 && heads.Items[0].Name == key.Name)
}

func validated(ctx context.Context, direct client.Client, key client.ObjectKey) {
	wet := &Rocket{ObjectMeta: metav1.ObjectMeta{Name: "wet", Namespace: key.Namespace}, Spec: RocketSpec{Fuel: "water"}}
	err := direct.Create(ctx, wet)
	require("webhook refuses", apierrors.IsForbidden(err) && strings.Contains(err.Error(), "water does not burn"))
	require("and is named", strings.Contains(err.Error(), `admission webhook "validate.rockets.test.ironbell.dev" denied`))
	rocket := &Rocket{}
	check("get", direct.Get(ctx, key, rocket))
	before := rocket.DeepCopyObject().(*Rocket)
	rocket.Spec.Stages = 0
	err = direct.Patch(ctx, rocket, client.MergeFrom(before))
	require("webhook compares with the old object", err != nil && strings.Contains(err.Error(), "stages cannot be taken off"))
	check("get", direct.Get(ctx, key, rocket))
	rocket.Labels = map[string]string{"flying": "yes"}
	check("label", direct.Update(ctx, rocket))
	err = direct.Delete(ctx, rocket)
	require("webhook keeps from deletion", err != nil && strings.Contains(err.Error(), "it is flying"))
	check("get", direct.Get(ctx, key, rocket))
	rocket.Labels = nil
	check("label removed", direct.Update(ctx, rocket))
}

func converted(ctx context.Context, cached, direct client.Client, namespace string) {
	old := &OldRocket{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: namespace}, Spec: OldRocketSpec{Propellant: "hydrogen"},
	}
	check("object of the old version", direct.Create(ctx, old))
	require("it comes back as it was sent", old.Spec.Propellant == "hydrogen" && old.UID != "")
	key := client.ObjectKeyFromObject(old)
	rocket := &Rocket{}
	check("read at the new version", direct.Get(ctx, key, rocket))
	require("webhook converts", rocket.Spec.Fuel == "hydrogen")
	eventually("the controller sees it", func() bool {
		return cached.Get(ctx, key, rocket) == nil && meta.IsStatusConditionTrue(rocket.Status.Conditions, "Ready")
	})
	list := &OldRocketList{}
	check("list at the old version", direct.List(ctx, list, client.InNamespace(namespace)))
	require("lists are converted", len(list.Items) == 2 && list.Items[0].Spec.Propellant == "hydrogen" &&
		list.Items[1].Spec.Propellant == "methane")
	wet := &OldRocket{
		ObjectMeta: metav1.ObjectMeta{Name: "wet", Namespace: namespace}, Spec: OldRocketSpec{Propellant: "water"},
	}
	err := direct.Create(ctx, wet)
	require("admission sees the version it asked for", err != nil && strings.Contains(err.Error(), "water does not burn"))
	check("old object deleted", direct.Delete(ctx, old))
}

func deleted(ctx context.Context, cached, direct client.Client, key client.ObjectKey) {
	rocket := &Rocket{}
	check("get", direct.Get(ctx, key, rocket))
	check("delete", direct.Delete(ctx, rocket))
	eventually("finalized and gone", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, key, rocket)) && apierrors.IsNotFound(cached.Get(ctx, key, rocket))
	})
	// kube-controller-manager looks for new kinds every 30 seconds.
	within(60*time.Second, "what it owned is collected", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, key, &corev1.ConfigMap{}))
	})
}

// released says that the leader gave its lease up.
func released(ctx context.Context, direct client.Client, namespace string) {
	found := &coordinationv1.Lease{}
	check("lease", direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lease}, found))
	require("lease is given up", found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity == "")
}
