package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
)

// documents reads the OpenAPI documents of all groups, and requires that they are the same when they are written again.
func documents(config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	check("discovery client", err)
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	check("documents found", err)
	require("documents of many groups", len(versions) > 10)
	for _, version := range versions {
		read, err := root.GVSpec(version)
		if err != nil {
			check(fmt.Sprintf("document of %s", version), err)
		}
		written, err := json.Marshal(read)
		if err != nil {
			check(fmt.Sprintf("document of %s", version), err)
		}
		var again spec3.OpenAPI
		if err := json.Unmarshal(written, &again); err != nil {
			check(fmt.Sprintf("document of %s again", version), err)
		}
		if reflect.DeepEqual(*read, again) {
			continue
		}
		for path := range read.Paths.Paths {
			if !reflect.DeepEqual(read.Paths.Paths[path], again.Paths.Paths[path]) {
				check(path, fmt.Errorf("differs when it is written again"))
			}
		}
		for name := range read.Components.Schemas {
			if !reflect.DeepEqual(read.Components.Schemas[name], again.Components.Schemas[name]) {
				before, _ := json.Marshal(read.Components.Schemas[name])
				after, _ := json.Marshal(again.Components.Schemas[name])
				check(name, fmt.Errorf("differs when it is written again: %s, %s", before, after))
			}
		}
		check(version.String(), fmt.Errorf("differs when it is written again"))
	}
	fmt.Println("documents are the same when they are written again")
}
