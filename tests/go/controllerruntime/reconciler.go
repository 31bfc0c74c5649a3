package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	finalizer = "test.ironbell.dev/landed"
	label     = "test.ironbell.dev/rocket"
	field     = client.FieldOwner("rocket-controller")
)

// rockets keeps a ConfigMap for each rocket, by server-side apply.
type rockets struct{ client client.Client }

func (r *rockets) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	rocket := &Rocket{}
	if err := r.client.Get(ctx, request.NamespacedName, rocket); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !rocket.DeletionTimestamp.IsZero() {
		before := rocket.DeepCopyObject().(*Rocket)
		if !controllerutil.RemoveFinalizer(rocket, finalizer) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, r.client.Patch(ctx, rocket, client.MergeFrom(before))
	}
	if controllerutil.AddFinalizer(rocket, finalizer) {
		return ctrl.Result{}, r.client.Update(ctx, rocket)
	}
	wanted := applycorev1.ConfigMap(rocket.Name, rocket.Namespace).
		WithLabels(map[string]string{label: rocket.Name}).WithData(map[string]string{"fuel": rocket.Spec.Fuel}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion(newVersion.String()).WithKind("Rocket").
			WithName(rocket.Name).WithUID(rocket.UID).WithController(true).WithBlockOwnerDeletion(true))
	if err := r.client.Apply(ctx, wanted, field, client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	before := rocket.DeepCopyObject().(*Rocket)
	rocket.Status.ObservedGeneration = rocket.Generation
	meta.SetStatusCondition(&rocket.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fuelled", Message: "fuelled with " + rocket.Spec.Fuel,
		ObservedGeneration: rocket.Generation,
	})
	return ctrl.Result{}, r.client.Status().Patch(ctx, rocket, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *rockets) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&Rocket{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// rules are the admission webhooks: they fill the tank, and let no rocket fly with water.
type rules struct{}

func (rules) Default(_ context.Context, rocket *Rocket) error {
	if rocket.Spec.Fuel == "" {
		rocket.Spec.Fuel = "kerosene"
	}
	return nil
}

func (rules) ValidateCreate(_ context.Context, rocket *Rocket) (admission.Warnings, error) {
	if rocket.Spec.Fuel == "water" {
		return nil, fmt.Errorf("water does not burn")
	}
	if rocket.Spec.Stages > 3 {
		return admission.Warnings{"more than three stages are hard to fly"}, nil
	}
	return nil, nil
}

func (r rules) ValidateUpdate(ctx context.Context, before, after *Rocket) (admission.Warnings, error) {
	if before.Spec.Stages > after.Spec.Stages {
		return nil, apierrors.NewForbidden(ctrlResource, after.Name, fmt.Errorf("stages cannot be taken off"))
	}
	return r.ValidateCreate(ctx, after)
}

func (rules) ValidateDelete(_ context.Context, rocket *Rocket) (admission.Warnings, error) {
	if rocket.Labels["flying"] == "yes" {
		return nil, fmt.Errorf("it is flying")
	}
	return nil, nil
}
