// Prints the field tables of Kubernetes' own kinds in protocol buffers, as src/ironbell/apiserver/http/protobuf.json has
// them: run it as `go run . > ../../src/ironbell/apiserver/http/protobuf.json`. Numbers and names are read from the tags
// of the Go types, so nothing is taken but facts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microtime",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intstr",
	reflect.TypeFor[runtime.RawExtension](): "json",
	reflect.TypeFor[metav1.FieldsV1]():      "json",

	reflect.TypeFor[apiextensionsv1.JSON]():                         "json",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "schemaOrBool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "schemaOrList",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "schemaOrStrings",
}

// further are the kinds that client-go's scheme does not have, or only without their group.
var further = map[string]reflect.Type{
	"apidiscovery.k8s.io/v2 APIGroupDiscovery":         reflect.TypeFor[apidiscoveryv2.APIGroupDiscovery](),
	"apidiscovery.k8s.io/v2beta1 APIGroupDiscovery":    reflect.TypeFor[apidiscoveryv2beta1.APIGroupDiscovery](),
	"apiextensions.k8s.io/v1 CustomResourceDefinition": reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](),
	"apiregistration.k8s.io/v1 APIService":             reflect.TypeFor[apiregistrationv1.APIService](),
	"meta.k8s.io/v1 PartialObjectMetadata":             reflect.TypeFor[metav1.PartialObjectMetadata](),
	"meta.k8s.io/v1beta1 PartialObjectMetadata":        reflect.TypeFor[metav1.PartialObjectMetadata](),
	"v1 APIGroup":        reflect.TypeFor[metav1.APIGroup](),
	"v1 APIGroupList":    reflect.TypeFor[metav1.APIGroupList](),
	"v1 APIResourceList": reflect.TypeFor[metav1.APIResourceList](),
	"v1 APIVersions":     reflect.TypeFor[metav1.APIVersions](),
	"v1 Status":          reflect.TypeFor[metav1.Status](),
}

type facts struct {
	Kinds    map[string]string            `json:"kinds"`
	Messages map[string]map[string]string `json:"messages"`
}

func main() {
	found := facts{map[string]string{}, map[string]map[string]string{}}
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		isStable := !strings.Contains(kind.Version, "alpha") && !strings.Contains(kind.Version, "beta")
		if kind.Version == runtime.APIVersionInternal || !isStable || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		if goType.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" {
			continue
		}
		found.Kinds[kind.GroupVersion().String()+" "+kind.Kind] = found.message(goType)
	}
	for kind, goType := range further {
		found.Kinds[kind] = found.message(goType)
	}
	found.message(reflect.TypeFor[metav1.DeleteOptions]())
	found.message(reflect.TypeFor[metav1.ListMeta]())
	encoder := json.NewEncoder(os.Stdout)
	fmt.Println(`{"kinds":{`)
	lines(found.Kinds, encoder)
	fmt.Println(`},"messages":{`)
	lines(found.Messages, encoder)
	fmt.Println(`}}`)
}

func lines[T any](table map[string]T, encoder *json.Encoder) {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	sort.Strings(names)
	for index, name := range names {
		value, err := json.Marshal(table[name])
		if err != nil {
			panic(err)
		}
		comma := ","
		if index == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%q:%s%s\n", name, value, comma)
	}
}

// message is the name of a struct type's table, which is made when it is not there yet.
func (f *facts) message(goType reflect.Type) string {
	parts := strings.Split(goType.PkgPath(), "/")
	name := strings.Join(parts[max(len(parts)-2, 0):], "/") + "." + goType.Name()
	if _, isKnown := f.Messages[name]; isKnown {
		return name
	}
	table := map[string]string{}
	f.Messages[name] = table
	for index := range goType.NumField() {
		field := goType.Field(index)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		options := strings.Split(field.Tag.Get("json"), ",")
		described := f.described(field.Type)
		if options[0] == "" {
			described = "+" + described
		} else if !strings.Contains(field.Tag.Get("json"), ",omit") && !strings.ContainsAny(described[:1], "*[{") {
			described = "=" + described
		}
		table[tag[1]] = options[0] + ":" + described
	}
	return name
}

func (f *facts) described(goType reflect.Type) string {
	if goType.Kind() == reflect.Pointer {
		return "*" + strings.TrimPrefix(f.described(goType.Elem()), "*")
	}
	if name, isSpecial := special[goType]; isSpecial {
		return name
	}
	switch goType.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Float64:
		return "double"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "int"
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if goType.Name() != "" && goType.Elem().Kind() == reflect.String {
			return "strings"
		}
		return "[]" + f.described(goType.Elem())
	case reflect.Map:
		return "{}" + f.described(goType.Elem())
	case reflect.Struct:
		return f.message(goType)
	}
	panic(goType.String())
}
