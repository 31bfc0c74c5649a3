// Uses a Kubernetes API through client-go as controllers do. Prints one line for each step and ends with status 1 at the
// first that fails, so that what it prints is the same for every server that works.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobufFirst = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

var namespace string

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

// protobuf is the configuration of typed clients as Kubernetes' own components have it: protocol buffers are sent and
// preferred, JSON is understood.
func protobuf(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.ContentType = runtime.ContentTypeProtobuf
	copied.AcceptContentTypes = protobufFirst
	return copied
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check("configuration", err)
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(protobuf(config))
	check("typed client with protocol buffers", err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	made, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-"},
	}, metav1.CreateOptions{})
	check("namespace", err)
	namespace = made.Name
	stored := objects(ctx, client)
	applied(ctx, client)
	retried(ctx, client)
	discovered(ctx, config)
	documented(config)
	dynamically(ctx, config)
	onlyMetadata(ctx, config)
	shared(ctx, client)
	watchList(ctx, config)
	recorder := events(ctx, client, stored)
	newEvents(ctx, client, stored)
	election(ctx, client, recorder)
	definitionClientset(ctx, config)
	check("namespace deleted", client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}))
}
