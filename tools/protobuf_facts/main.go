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

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microtime",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intstr",
	reflect.TypeFor[runtime.RawExtension](): "json",
	reflect.TypeFor[metav1.FieldsV1]():      "json",
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
			if kind.Kind == "DeleteOptions" {
				found.message(goType)
			}
			continue
		}
		found.Kinds[kind.GroupVersion().String()+" "+kind.Kind] = found.message(goType)
	}
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
