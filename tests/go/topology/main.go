// topology asks Cluster API's own packages what becomes of a topology: its patches, its variables, and what is said of
// Clusters and ClusterClasses when they are written. One JSON request per line in, one answer out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

type request struct {
	Operation string                   `json:"operation"`
	Patch     *patchRequest            `json:"patch"`
	Cluster   *clusterv1.Cluster       `json:"cluster"`
	Old       *clusterv1.Cluster       `json:"old"`
	Class     *clusterv1.ClusterClass  `json:"class"`
	OldClass  *clusterv1.ClusterClass  `json:"oldClass"`
	Objects   []map[string]interface{} `json:"objects"`
}

type answer struct {
	Desired  *desiredState      `json:"desired,omitempty"`
	Cluster  *clusterv1.Cluster `json:"cluster,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
	Faults   []fault            `json:"faults,omitempty"`
	Error    string             `json:"error,omitempty"`
}

func main() {
	if err := feature.MutableGates.Set("ClusterTopology=true,MachineTaintPropagation=true"); err != nil {
		panic(err)
	}
	var lines [][]byte
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	for in.Scan() {
		lines = append(lines, append([]byte{}, in.Bytes()...))
	}
	answers := make([]*answer, len(lines))
	// classes that are not there are waited for: requests wait together
	var all sync.WaitGroup
	for number := range lines {
		all.Add(1)
		go func() {
			defer all.Done()
			answers[number] = answered(lines[number])
		}()
	}
	all.Wait()
	out := json.NewEncoder(os.Stdout)
	for _, said := range answers {
		if err := out.Encode(said); err != nil {
			panic(err)
		}
	}
}

func answered(line []byte) (said *answer) {
	said = &answer{}
	defer func() {
		if found := recover(); found != nil {
			said.Error = fmt.Sprintf("panic: %v", found)
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		said.Error = "request: " + err.Error()
		return said
	}
	var err error
	switch asked.Operation {
	case "patch":
		err = patched(&asked, said)
	case "variables":
		variables(&asked, said)
	case "cluster":
		err = cluster(&asked, said)
	case "class":
		err = class(&asked, said)
	default:
		err = fmt.Errorf("unknown operation %q", asked.Operation)
	}
	if err != nil {
		said.Error = err.Error()
	}
	return said
}
