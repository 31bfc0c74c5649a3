package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsrecord "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// events records by the core API: repeated ones are counted in one object.
func events(ctx context.Context, client kubernetes.Interface, about *corev1.ConfigMap) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Tested", "it works")
	}
	options := metav1.ListOptions{FieldSelector: "involvedObject.name=" + about.Name}
	eventually("events are counted together", func() bool {
		found, err := client.CoreV1().Events(namespace).List(ctx, options)
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3
	})
	return recorder
}

// newEvents records by events.k8s.io; the core API shows the same event.
func newEvents(ctx context.Context, client kubernetes.Interface, about *corev1.ConfigMap) {
	broadcaster := eventsrecord.NewBroadcaster(&eventsrecord.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	check("recorder of events.k8s.io", broadcaster.StartRecordingToSinkWithContext(ctx))
	recorder := broadcaster.NewRecorder(scheme.Scheme, "test.ironbell.dev/recorder")
	recorder.Eventf(about, nil, corev1.EventTypeWarning, "Turned", "Turn", "it turned %d times", 3)
	eventually("events are seen by both APIs", func() bool {
		found, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Turned"})
		if err != nil || len(found.Items) != 1 || found.Items[0].Note != "it turned 3 times" {
			return false
		}
		same, err := client.CoreV1().Events(namespace).Get(ctx, found.Items[0].Name, metav1.GetOptions{})
		return err == nil && same.Message == "it turned 3 times" && same.Action == "Turn"
	})
}

// election has one leader that renews, and hands over to the next at once when it stops.
func election(ctx context.Context, client kubernetes.Interface, recorder record.EventRecorder) {
	lead := func(ctx context.Context, identity string, leading chan<- string) {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "leader", client.CoreV1(),
			client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: recorder})
		if err != nil {
			check("lock", err)
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second,
			RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading <- identity },
				OnStoppedLeading: func() {},
			},
		})
	}
	leading := make(chan string, 2)
	first, stopFirst := context.WithCancel(ctx)
	second, stopSecond := context.WithCancel(ctx)
	ended := make(chan bool, 2)
	go func() { lead(first, "first", leading); ended <- true }()
	require("first leads", <-leading == "first")
	go func() { lead(second, "second", leading); ended <- true }()
	eventually("the leader renews", func() bool {
		lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
		return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) && len(leading) == 0
	})
	stopFirst()
	require("second leads as soon as the first stops", <-leading == "second")
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
	require("the lease counts its transitions", err == nil && *lease.Spec.LeaseTransitions >= 1)
	stopSecond()
	<-ended
	<-ended
}
