package main

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/util/index"
)

type fault struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

var scheme = runtime.NewScheme()

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
}

// client reads the objects that a request brings.
func client(asked *request) (ctrlclient.Client, error) {
	made := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&clusterv1.Cluster{}, index.ClusterClassRefPath, index.ClusterByClusterClassRef)
	for _, one := range asked.Objects {
		made = made.WithObjects(&unstructured.Unstructured{Object: one})
	}
	return made.Build(), nil
}

func variables(asked *request, said *answer) {
	webhook := &admission.Cluster{}
	listed(webhook.DefaultAndValidateVariables(context.Background(), asked.Cluster, asked.Old, asked.Class), said)
	said.Cluster = asked.Cluster
}

func cluster(asked *request, said *answer) error {
	known, err := client(asked)
	if err != nil {
		return err
	}
	webhook := &admission.Cluster{Client: known}
	ctx := context.Background()
	var warnings []string
	if asked.Old == nil {
		warnings, err = webhook.ValidateCreate(ctx, asked.Cluster)
	} else {
		warnings, err = webhook.ValidateUpdate(ctx, asked.Old, asked.Cluster)
	}
	said.Warnings = warnings
	return refused(err, said)
}

func class(asked *request, said *answer) error {
	known, err := client(asked)
	if err != nil {
		return err
	}
	webhook := &admission.ClusterClass{Client: known}
	ctx := context.Background()
	switch {
	case asked.Class == nil:
		said.Warnings, err = webhook.ValidateDelete(ctx, asked.OldClass)
	case asked.OldClass == nil:
		said.Warnings, err = webhook.ValidateCreate(ctx, asked.Class)
	default:
		said.Warnings, err = webhook.ValidateUpdate(ctx, asked.OldClass, asked.Class)
	}
	return refused(err, said)
}

func listed(found field.ErrorList, said *answer) {
	for _, one := range found {
		said.Faults = append(said.Faults, fault{string(one.Type), one.Field, one.ErrorBody()})
	}
}

// refused tells the causes of a refusal apart from a failure.
func refused(err error, said *answer) error {
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	if status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		said.Faults = append(said.Faults, fault{string(status.ErrStatus.Reason), "", status.ErrStatus.Message})
		return nil
	}
	for _, one := range status.ErrStatus.Details.Causes {
		said.Faults = append(said.Faults, fault{string(one.Type), one.Field, one.Message})
	}
	return nil
}
