// Uses the embedded API through client-go as controllers do: typed clients with protocol buffers, informers, the event
// recorder, leader election, apply. Prints one line for each step and ends with status 1 at the first that fails.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

const namespace = "default"

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
	poll := func(context.Context) (bool, error) { return condition(), nil }
	check(step, wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 10*time.Second, true, poll))
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check("configuration", err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	check("client", err)
	made := objects(client)
	informer(client)
	recorder := events(client, made)
	election(client, recorder)
	_, err = client.Discovery().OpenAPISchema()
	check("openapi version 2", err)
}

func objects(client kubernetes.Interface) *corev1.ConfigMap {
	ctx, maps := context.Background(), client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Labels: map[string]string{"made": "yes"}},
		Data:       map[string]string{"key": "value"},
		BinaryData: map[string][]byte{"bytes": {0, 255}},
	}, metav1.CreateOptions{})
	check("create", err)
	changed := made.DeepCopy()
	changed.Data["key"] = "other"
	stored, err := maps.Update(ctx, changed, metav1.UpdateOptions{})
	check("update", err)
	require("content is kept", stored.Data["key"] == "other" && stored.BinaryData["bytes"][1] == 255)
	_, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	require("an old version conflicts", apierrors.IsConflict(err))
	_, err = maps.Get(ctx, "none", metav1.GetOptions{})
	require("a missing object is not found", apierrors.IsNotFound(err))
	applied := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"})
	_, err = maps.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "test"})
	check("apply", err)
	patch := []byte(`{"data":{"b":"2"}}`)
	_, err = maps.Patch(ctx, "applied", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	check("strategic patch", err)
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	check("node", err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	check("node status", err)
	require("node status is kept", len(node.Status.Conditions) == 1 && len(node.Spec.Taints) == 1)
	return stored
}

func informer(client kubernetes.Interface) {
	stop := make(chan struct{})
	defer close(stop)
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	_, err := lister.Get("applied")
	check("informer lists", err)
	maps := client.CoreV1().ConfigMaps(namespace)
	check("delete", maps.Delete(context.Background(), "applied", metav1.DeleteOptions{}))
	eventually("informer watches", func() bool {
		_, err := lister.Get("applied")
		return apierrors.IsNotFound(err)
	})
}

func events(client kubernetes.Interface, about *corev1.ConfigMap) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Tested", "it works")
	}
	options := metav1.ListOptions{FieldSelector: "involvedObject.name=" + about.Name}
	eventually("events are counted together", func() bool {
		found, err := client.CoreV1().Events(namespace).List(context.Background(), options)
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3
	})
	return recorder
}

func election(client kubernetes.Interface, recorder record.EventRecorder) {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "leader", client.CoreV1(),
		client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "test", EventRecorder: recorder})
	check("lock", err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	renewed := false
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				eventually("the leader renews", func() bool {
					lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
					return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)
				})
				renewed = true
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	require("the lease is released", renewed)
}
