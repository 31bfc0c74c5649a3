package main

import (
	"context"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	cogs       = schema.GroupVersionResource{Group: "clientgo.test.ironbell.dev", Version: "v1", Resource: "cogs"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// discovered reads what is served, both ways, and maps kinds to resources.
func discovered(ctx context.Context, config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	check("discovery client", err)
	_, lists, err := client.ServerGroupsAndResources()
	check("groups and resources", err)
	aggregated := served(lists)
	client.UseLegacyDiscovery = true
	_, lists, err = client.ServerGroupsAndResources()
	check("groups and resources one by one", err)
	require("both ways tell the same", strings.Join(aggregated, " ") == strings.Join(served(lists), " "))
	client.UseLegacyDiscovery = false
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	check("mapping", err)
	require("mapping is right", mapping.Resource.Resource == "deployments" && mapping.Scope.Name() == meta.RESTScopeNameNamespace)
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "none", Kind: "None"})
	require("an unknown kind has no mapping", meta.IsNoMatchError(err))
	version, err := client.ServerVersion()
	check("version", err)
	require("version is Kubernetes'", version.Major == "1")
	_, err = client.OpenAPISchema()
	check("openapi version 2", err)
	paths, err := client.OpenAPIV3().Paths()
	check("openapi version 3", err)
	document, err := paths["api/v1"].Schema("application/json")
	require("openapi of the core group", err == nil && len(document) > 0)
}

func served(lists []*metav1.APIResourceList) []string {
	var names []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			names = append(names, list.GroupVersion+"/"+resource.Name+"="+strings.Join(resource.Verbs, ","))
		}
	}
	sort.Strings(names)
	return names
}

// dynamically installs a definition and uses its kind at once, as operators do.
func dynamically(ctx context.Context, config *rest.Config) {
	client, err := dynamic.NewForConfig(config)
	check("dynamic client", err)
	_, err = client.Resource(definitions).Create(ctx, definition(), metav1.CreateOptions{})
	check("definition", err)
	eventually("definition is established", func() bool {
		found, err := client.Resource(definitions).Get(ctx, "cogs."+cogs.Group, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, each := range conditions {
			condition := each.(map[string]any)
			if condition["type"] == "Established" {
				return condition["status"] == "True"
			}
		}
		return false
	})
	kind := client.Resource(cogs).Namespace(namespace)
	cog := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cogs.GroupVersion().String(), "kind": "Cog", "metadata": map[string]any{"name": "one"},
		"spec": map[string]any{"teeth": int64(9007199254740993), "ratio": 0.5},
	}}
	stored, err := kind.Create(ctx, cog, metav1.CreateOptions{})
	check("custom object", err)
	teeth, _, err := unstructured.NestedInt64(stored.Object, "spec", "teeth")
	require("large integers are exact", err == nil && teeth == 9007199254740993)
	require("generation", stored.GetGeneration() == 1)
	check("status", unstructured.SetNestedField(stored.Object, "Turning", "status", "phase"))
	stored, err = kind.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	check("status update", err)
	require("status leaves the generation", stored.GetGeneration() == 1)
	stored, err = kind.Apply(ctx, "one", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cogs.GroupVersion().String(), "kind": "Cog", "metadata": map[string]any{"name": "one"},
		"spec": map[string]any{"colour": "red"},
	}}, metav1.ApplyOptions{FieldManager: "test"})
	check("dynamic apply", err)
	require("apply moves the generation", stored.GetGeneration() == 2)
	_, err = kind.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"teeth":"many"}}`), metav1.PatchOptions{})
	require("a wrong type is invalid", apierrors.IsInvalid(err))
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	lister := factory.ForResource(cogs).Lister()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(stopped.Done())
	require("dynamic informer", factory.WaitForCacheSync(stopped.Done())[cogs])
	_, err = lister.ByNamespace(namespace).Get("one")
	check("dynamic informer lists", err)
	check("definition deleted", client.Resource(definitions).Delete(ctx, "cogs."+cogs.Group, metav1.DeleteOptions{}))
	eventually("dynamic informer sees the objects go", func() bool {
		_, err := lister.ByNamespace(namespace).Get("one")
		return apierrors.IsNotFound(err)
	})
	eventually("the kind is gone", func() bool {
		_, err := kind.Get(ctx, "one", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func definition() *unstructured.Unstructured {
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	spec := object(map[string]any{
		"teeth": map[string]any{"type": "integer", "format": "int64"}, "ratio": map[string]any{"type": "number"},
		"colour": map[string]any{"type": "string"},
	})
	status := object(map[string]any{"phase": map[string]any{"type": "string"}})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "cogs." + cogs.Group},
		"spec": map[string]any{
			"group": cogs.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Cog", "plural": "cogs", "singular": "cog", "listKind": "CogList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{"spec": spec, "status": status})},
			}},
		},
	}}
}

// onlyMetadata lists, watches and patches objects of which it reads nothing but metadata.
func onlyMetadata(ctx context.Context, config *rest.Config) {
	client, err := metadata.NewForConfig(config)
	check("metadata client", err)
	found, err := client.Resource(configMaps).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "from=client-go"})
	check("metadata list", err)
	require("metadata is found", len(found.Items) == 1 && found.Items[0].UID != "")
	name := found.Items[0].Name
	_, err = client.Resource(configMaps).Namespace(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"seen":"yes"}}}`), metav1.PatchOptions{})
	check("metadata patch", err)
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
	lister := factory.ForResource(configMaps).Lister()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(stopped.Done())
	require("metadata informer", factory.WaitForCacheSync(stopped.Done())[configMaps])
	object, err := lister.ByNamespace(namespace).Get(name)
	check("metadata informer lists", err)
	accessor, err := meta.Accessor(object)
	require("metadata informer has annotations", err == nil && accessor.GetAnnotations()["seen"] == "yes")
}
