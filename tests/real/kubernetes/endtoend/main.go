// Kubernetes' own end-to-end tests of its API machinery, as a program: those of k8s.io/kubernetes/test/e2e that need an
// API and nothing else, whose program otherwise waits for nodes before it begins.
//
// The packages that it imports bring tests of workloads along; which specs run is said with --ginkgo.focus.
package main

import (
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/utils/format"
)

// verdict is what Ginkgo tells of a whole run, where otherwise a testing.T would be.
type verdict struct{ failed bool }

func (v *verdict) Fail() { v.failed = true }

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	var all verdict
	ginkgo.RunSpecs(&all, "Kubernetes", suite, reporter)
	if all.failed {
		os.Exit(1)
	}
}
