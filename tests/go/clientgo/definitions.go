package main

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// definitionClientset makes, changes and deletes a CustomResourceDefinition as the clientset is made by default, which sends and
// prefers protocol buffers.
func definitionClientset(ctx context.Context, config *rest.Config) {
	clients, err := apiextensions.NewForConfig(config)
	check("clientset of definitions", err)
	client := clients.ApiextensionsV1().CustomResourceDefinitions()
	group := namespace + ".example.org"
	chosen := metav1.ListOptions{FieldSelector: "metadata.name=bulbs." + group}
	watcher, err := client.Watch(ctx, chosen)
	check("definitions watched", err)
	defer watcher.Stop()
	schema := apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {
				Type:    "object",
				Default: &apiextensionsv1.JSON{Raw: []byte(`{"watts":2.5}`)},
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"watts": {Type: "number", Minimum: ptr.To(0.5), Enum: []apiextensionsv1.JSON{{Raw: []byte(`2.5`)}}},
				},
			},
			"labels": {
				Type: "object",
				AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To(int64(9))},
				},
			},
			"list": {
				Type:  "array",
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
			},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "!has(self.list) || size(self.list) > 0"}},
	}
	made, err := client.Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "bulbs." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "bulbs", Kind: "Bulb"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
			}},
		},
	}, metav1.CreateOptions{})
	check("definition created", err)
	kept := made.Spec.Versions[0].Schema.OpenAPIV3Schema
	require("schema is whole", *kept.Properties["spec"].Properties["watts"].Minimum == 0.5 &&
		string(kept.Properties["spec"].Default.Raw) == `{"watts":2.5}` &&
		*kept.Properties["labels"].AdditionalProperties.Schema.MaxLength == 9 &&
		kept.Properties["list"].Items.Schema.Type == "string" && len(kept.XValidations) == 1)
	event := <-watcher.ResultChan()
	added, isDefinition := event.Object.(*apiextensionsv1.CustomResourceDefinition)
	require("definition seen", event.Type == watch.Added && isDefinition && added.UID == made.UID)
	eventually("definition established", func() bool {
		found, err := client.Get(ctx, made.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	listed, err := client.List(ctx, chosen)
	check("definitions listed", err)
	require("one definition", len(listed.Items) == 1 && listed.Items[0].Spec.Names.Kind == "Bulb")
	_, err = client.Create(ctx, made, metav1.CreateOptions{})
	require("definition with a version is refused", err != nil)
	check("definition deleted", client.Delete(ctx, made.Name, metav1.DeleteOptions{}))
	eventually("definition is gone", func() bool {
		_, err := client.Get(ctx, made.Name, metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}
