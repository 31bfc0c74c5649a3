package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
)

// documented reads the OpenAPI v3 document of every group and version that is no custom resource's, and writes it again:
// nothing of it may be lost.
func documented(config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	check("discovery of documents", err)
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	check("documents listed", err)
	read := 0
	for _, version := range versions {
		if strings.Contains(version.Group, ".") && !strings.HasSuffix(version.Group, ".k8s.io") {
			continue
		}
		first, err := root.GVSpec(version)
		if err != nil {
			check("document read", fmt.Errorf("%s: %w", version, err))
		}
		written, err := json.Marshal(first)
		if err != nil {
			check("document written", fmt.Errorf("%s: %w", version, err))
		}
		var second spec3.OpenAPI
		if err := json.Unmarshal(written, &second); err != nil {
			check("document read again", fmt.Errorf("%s: %w", version, err))
		}
		if !reflect.DeepEqual(*first, second) {
			check("document read again", fmt.Errorf("%s is another one", version))
		}
		read++
	}
	require("documents of all groups are read and written again", read > 10)
}
