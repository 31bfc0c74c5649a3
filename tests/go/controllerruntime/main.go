// A controller-runtime manager as operators are written: a definition with two versions and a conversion webhook,
// admission webhooks, a controller with finalizer, owned objects, apply and status, leader election and a cache with
// selectors. Prints one line for each step and ends with status 1 at the first that fails.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apix "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const lease = "rocket-controller"

func check(step string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", step, err)
		os.Exit(1)
	}
	fmt.Println(step)
}

func require(step string, holds bool) {
	if !holds {
		check(step, fmt.Errorf("does not hold"))
	}
	fmt.Println(step)
}

func eventually(step string, condition func() bool) {
	within(20*time.Second, step, condition)
}

func within(limit time.Duration, step string, condition func() bool) {
	poll := func(context.Context) (bool, error) { return condition(), nil }
	check(step, wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, limit, true, poll))
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Second)
	defer cancel()
	scheme := runtime.NewScheme()
	check("scheme", clientgoscheme.AddToScheme(scheme))
	check("scheme of definitions", apix.AddToScheme(scheme))
	addTypes(scheme)
	direct, err := client.New(config.GetConfigOrDie(), client.Options{Scheme: scheme})
	check("client", err)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "controller-runtime-"}}
	check("namespace", direct.Create(ctx, space))
	folder, err := os.MkdirTemp("", "webhooks-")
	check("folder", err)
	defer os.RemoveAll(folder)
	authority, err := certificate(folder)
	check("certificate", err)
	port, err := freePort()
	check("port", err)
	address := fmt.Sprintf("https://127.0.0.1:%d", port)
	installed := append(webhooks(address, authority), definition(address, authority))
	check("definition", direct.Create(ctx, installed[2]))
	eventually("definition is established", func() bool {
		found := &apix.CustomResourceDefinition{}
		return direct.Get(ctx, client.ObjectKeyFromObject(installed[2]), found) == nil && isEstablished(found)
	})
	running, stop := context.WithCancel(ctx)
	manager := newManager(scheme, space.Name, folder, port)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	<-manager.Elected()
	check("elected", nil)
	require("cache is synced", manager.GetCache().WaitForCacheSync(ctx))
	eventually("webhooks are served", func() bool { return manager.GetWebhookServer().StartedChecker()(nil) == nil })
	for _, object := range installed[:2] {
		check(fmt.Sprintf("%T", object), direct.Create(ctx, object))
	}
	exercise(ctx, manager, direct, space.Name)
	stop()
	check("manager stopped", <-ended)
	released(ctx, direct, space.Name)
	for _, object := range installed {
		check(fmt.Sprintf("%T deleted", object), direct.Delete(ctx, object))
	}
	check("namespace deleted", direct.Delete(ctx, space))
}

func isEstablished(definition *apix.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apix.Established {
			return condition.Status == apix.ConditionTrue
		}
	}
	return false
}

func newManager(scheme *runtime.Scheme, namespace, certificates string, port int) ctrl.Manager {
	ours, err := labels.NewRequirement(label, selection.Exists, nil)
	check("selector", err)
	manager, err := ctrl.NewManager(config.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*ours)},
			},
		},
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates}),
	})
	check("manager", err)
	check("controller", (&rockets{client: manager.GetClient()}).setup(manager))
	check("webhooks", ctrl.NewWebhookManagedBy(manager, &Rocket{}).WithDefaulter(rules{}).WithValidator(rules{}).Complete())
	return manager
}
