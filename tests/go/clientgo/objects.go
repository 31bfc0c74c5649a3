package main

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// objects sends whole objects of several kinds, each with what is hard to encode: quantities, times, bytes, unions.
func objects(ctx context.Context, client kubernetes.Interface) *corev1.ConfigMap {
	maps := client.CoreV1().ConfigMaps(namespace)
	stored, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "map-", Labels: map[string]string{"from": "client-go"}},
		Data:       map[string]string{"a": "1"},
		BinaryData: map[string][]byte{"b": {0, 1, 2}},
	}, metav1.CreateOptions{})
	check("create", err)
	require("created object is whole", strings.HasPrefix(stored.Name, "map-") && stored.UID != "" &&
		!stored.CreationTimestamp.IsZero() && string(stored.BinaryData["b"]) == "\x00\x01\x02")
	stored.Data["a"] = "2"
	updated, err := maps.Update(ctx, stored, metav1.UpdateOptions{})
	check("update", err)
	_, err = maps.Update(ctx, stored, metav1.UpdateOptions{})
	require("an old version conflicts", apierrors.IsConflict(err))
	_, err = maps.Get(ctx, "none", metav1.GetOptions{})
	require("a missing object is not found", apierrors.IsNotFound(err))
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: stored.Name}}, metav1.CreateOptions{})
	require("a second of a name exists already", apierrors.IsAlreadyExists(err))
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Bad_"}}, metav1.CreateOptions{})
	require("a bad name is invalid", apierrors.IsInvalid(err))
	uid := types.UID("another")
	err = maps.Delete(ctx, stored.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	require("preconditions of delete hold", apierrors.IsConflict(err))
	_, err = maps.Patch(ctx, stored.Name, types.StrategicMergePatchType, []byte(`{"data":{"c":"2"}}`), metav1.PatchOptions{})
	check("strategic patch", err)
	_, err = maps.Patch(ctx, stored.Name, types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/data/c"}]`), metav1.PatchOptions{})
	check("json patch", err)
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	check("node", err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}
	node, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	check("node status", err)
	require("node status is kept", len(node.Status.Conditions) == 1 && node.Status.Capacity.Memory().String() == "8Gi")
	check("node deleted", client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}))
	deployment, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment(), metav1.CreateOptions{})
	check("deployment", err)
	container := deployment.Spec.Template.Spec.Containers[0]
	require("deployment is whole", container.LivenessProbe.HTTPGet.Port.StrVal == "web" &&
		container.Resources.Limits.Cpu().MilliValue() == 100)
	scale, err := client.AppsV1().Deployments(namespace).GetScale(ctx, deployment.Name, metav1.GetOptions{})
	check("scale", err)
	scale.Spec.Replicas = 4
	scale, err = client.AppsV1().Deployments(namespace).UpdateScale(ctx, deployment.Name, scale, metav1.UpdateOptions{})
	check("scaled", err)
	require("scale is kept", scale.Spec.Replicas == 4)
	pages := 0
	options := metav1.ListOptions{Limit: 1}
	for {
		page, err := maps.List(ctx, options)
		if err != nil {
			check("page", err)
		}
		pages += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	require("pages", pages >= 1)
	return updated
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")},
	}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web:1", LivenessProbe: probe,
					Ports:     []corev1.ContainerPort{{Name: "web", ContainerPort: 80}},
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
				}}},
			},
		},
	}
}

// applied uses the typed apply configurations: two managers, a conflict, and what one manager owns.
func applied(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	first := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1", "b": "1"}).
		WithLabels(map[string]string{"from": "client-go"})
	_, err := maps.Apply(ctx, first, metav1.ApplyOptions{FieldManager: "first"})
	check("apply", err)
	second := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2"})
	_, err = maps.Apply(ctx, second, metav1.ApplyOptions{FieldManager: "second"})
	require("apply conflicts", apierrors.IsConflict(err))
	stored, err := maps.Apply(ctx, second, metav1.ApplyOptions{FieldManager: "second", Force: true})
	check("apply by force", err)
	require("both managers' fields are there", stored.Data["a"] == "2" && stored.Data["b"] == "1")
	extracted, err := applycorev1.ExtractConfigMap(stored, "first")
	check("extract", err)
	require("a manager finds its own fields", len(extracted.Data) == 1 && extracted.Data["b"] == "1")
	owned := applycorev1.ConfigMap("owned", namespace).WithOwnerReferences(applymetav1.OwnerReference().
		WithAPIVersion("v1").WithKind("ConfigMap").WithName(stored.Name).WithUID(stored.UID))
	_, err = maps.Apply(ctx, owned, metav1.ApplyOptions{FieldManager: "first"})
	check("apply with an owner", err)
	foreground := metav1.DeletePropagationForeground
	check("foreground delete", maps.Delete(ctx, stored.Name, metav1.DeleteOptions{PropagationPolicy: &foreground}))
	eventually("owned objects go first", func() bool {
		_, gone := maps.Get(ctx, "owned", metav1.GetOptions{})
		_, owner := maps.Get(ctx, "applied", metav1.GetOptions{})
		return apierrors.IsNotFound(gone) && apierrors.IsNotFound(owner)
	})
}

var patient = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 20}

// retried lets two writers at one object: each looks again on a conflict, and nothing is lost.
func retried(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}, metav1.CreateOptions{})
	check("shared object", err)
	done := make(chan error)
	for _, key := range []string{"a", "b", "c", "d"} {
		go func() {
			done <- retry.RetryOnConflict(patient, func() error {
				current, err := maps.Get(ctx, "shared", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if current.Data == nil {
					current.Data = map[string]string{}
				}
				current.Data[key] = "1"
				_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			check("retry on conflict", err)
		}
	}
	current, err := maps.Get(ctx, "shared", metav1.GetOptions{})
	check("retry on conflict", err)
	require("no write is lost", len(current.Data) == 4)
}
