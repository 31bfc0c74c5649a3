package main

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// shared runs informers of several kinds from one factory; since client-go 0.35 they stream their first list.
func shared(ctx context.Context, client kubernetes.Interface) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "before"}}, metav1.CreateOptions{})
	check("object before the informer", err)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace)
	deployments := factory.Apps().V1().Deployments().Lister()
	var added, changed, deleted atomic.Int32
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { added.Add(isAfter(object)) },
		UpdateFunc: func(_, object any) { changed.Add(isAfter(object)) },
		DeleteFunc: func(object any) { deleted.Add(isAfter(object)) },
	})
	check("event handler", err)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		require("informer of "+kind.Elem().Name(), synced)
	}
	_, err = lister.Get("before")
	check("informer lists", err)
	found, err := deployments.List(labels.Everything())
	require("informer of another kind lists", err == nil && len(found) == 1)
	after, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{})
	check("object after the informer", err)
	after.Data = map[string]string{"a": "1"}
	_, err = maps.Update(ctx, after, metav1.UpdateOptions{})
	check("changed", err)
	check("deleted", maps.Delete(ctx, "after", metav1.DeleteOptions{}))
	eventually("informer tells of each change once", func() bool {
		_, err := lister.Get("after")
		return apierrors.IsNotFound(err) && added.Load() == 1 && changed.Load() == 1 && deleted.Load() == 1
	})
}

func isAfter(object any) int32 {
	if found, isMap := object.(*corev1.ConfigMap); isMap && found.Name == "after" {
		return 1
	}
	return 0
}

// watchList asks as the informers do, by hand: what is there as events, a bookmark that says so, then changes.
func watchList(ctx context.Context, config *rest.Config) {
	for _, kind := range []struct {
		name   string
		config *rest.Config
	}{{"json", config}, {"protocol buffers", protobuf(config)}} {
		client, err := kubernetes.NewForConfig(kind.config)
		check("client of "+kind.name, err)
		yes, timeout := true, int64(20)
		stream, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		check("watch list of "+kind.name, err)
		names := map[string]bool{}
		ended := false
		for !ended {
			select {
			case event := <-stream.ResultChan():
				object, isMap := event.Object.(*corev1.ConfigMap)
				if !isMap {
					require("event of "+kind.name, false)
				}
				if event.Type == watch.Added {
					names[object.Name] = true
				}
				ended = event.Type == watch.Bookmark && object.Annotations[metav1.InitialEventsAnnotationKey] == "true"
			case <-time.After(10 * time.Second):
				require("bookmark of "+kind.name, false)
			}
		}
		stream.Stop()
		require("bookmark of "+kind.name, names["before"] && names["shared"])
	}
}
