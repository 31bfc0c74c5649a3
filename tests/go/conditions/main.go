// conditions adds up conditions with Cluster API's own packages: one JSON request per line in, one answer out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	legacy "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/cluster-api/util/version"
)

type object struct {
	Kind             string               `json:"kind"`
	Name             string               `json:"name"`
	ControlPlane     bool                 `json:"controlPlane"`
	Conditions       []metav1.Condition   `json:"conditions"`
	LegacyConditions clusterv1.Conditions `json:"legacyConditions"`
}

type request struct {
	Operation         string   `json:"operation"`
	Objects           []object `json:"objects"`
	Types             []string `json:"types"`
	Negative          []string `json:"negative"`
	IgnoreIfMissing   []string `json:"ignoreIfMissing"`
	StepCounter       bool     `json:"stepCounter"`
	StepCounterIfOnly []string `json:"stepCounterIfOnly"`
	NameSource        bool     `json:"nameSource"`
	Texts             []string `json:"texts"`
}

type answer struct {
	Condition  *metav1.Condition    `json:"condition"`
	Legacy     *clusterv1.Condition `json:"legacy"`
	Conditions []metav1.Condition   `json:"conditions"`
	Texts      []string             `json:"texts"`
	Numbers    []int                `json:"numbers"`
	Error      string               `json:"error"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked request
		said := &answer{}
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			said.Error = "request: " + err.Error()
		} else if err := answered(&asked, said); err != nil {
			said.Error = err.Error()
		}
		if err := out.Encode(said); err != nil {
			panic(err)
		}
	}
}

// both kinds of conditions can be read from it, whatever its kind is
type holder struct {
	clusterv1.Machine
}

func made(from object) *holder {
	one := &holder{}
	one.Name, one.Kind = from.Name, from.Kind
	if from.ControlPlane {
		one.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	one.SetConditions(from.Conditions)
	one.SetV1Beta1Conditions(from.LegacyConditions)
	return one
}

func answered(asked *request, said *answer) (err error) {
	switch asked.Operation {
	case "summary":
		said.Condition, err = conditions.NewSummaryCondition(made(asked.Objects[0]), "Target",
			conditions.ForConditionTypes(asked.Types),
			conditions.NegativePolarityConditionTypes(asked.Negative),
			conditions.IgnoreTypesIfMissing(asked.IgnoreIfMissing))
	case "aggregate":
		said.Condition, err = conditions.NewAggregateCondition(holders(asked), asked.Types[0],
			conditions.TargetConditionType("Target"),
			conditions.NegativePolarityConditionTypes(asked.Negative))
	case "mirror":
		said.Condition = conditions.NewMirrorCondition(made(asked.Objects[0]), asked.Types[0],
			conditions.TargetConditionType("Target"))
	case "set":
		one := made(object{Kind: "Machine", Name: "m"})
		for _, condition := range asked.Objects[0].Conditions {
			conditions.Set(one, condition)
		}
		said.Conditions = one.GetConditions()
	case "legacy-summary":
		one := made(asked.Objects[0])
		legacy.SetSummary(one, legacyOptions(asked)...)
		said.Legacy = legacy.Get(one, clusterv1.ReadyV1Beta1Condition)
	case "legacy-aggregate":
		target, sources := made(object{Kind: "Machine", Name: "m"}), []legacy.Getter{}
		for _, one := range holders(asked) {
			sources = append(sources, one)
		}
		options := []legacy.MergeOption{}
		if asked.NameSource {
			options = append(options, legacy.AddSourceRef())
		}
		legacy.SetAggregate(target, "Target", sources, options...)
		said.Legacy = legacy.Get(target, "Target")
	case "label-values":
		for _, text := range asked.Texts {
			said.Texts = append(said.Texts, format.MustFormatValue(text))
		}
	case "versions":
		return versions(asked.Texts, said)
	case "api-versions":
		for i := range asked.Texts {
			for j := range asked.Texts {
				said.Numbers = append(said.Numbers, apiversion.CompareKubeAwareVersionStrings(asked.Texts[i], asked.Texts[j]))
			}
		}
	default:
		return fmt.Errorf("unknown operation %q", asked.Operation)
	}
	return err
}

func holders(asked *request) []*holder {
	all := make([]*holder, 0, len(asked.Objects))
	for _, from := range asked.Objects {
		all = append(all, made(from))
	}
	return all
}

func legacyOptions(asked *request) []legacy.MergeOption {
	options := []legacy.MergeOption{legacy.WithStepCounterIf(asked.StepCounter)}
	if asked.Types != nil {
		options = append(options, legacy.WithConditions(types(asked.Types)...))
	}
	if asked.Negative != nil {
		options = append(options, legacy.WithNegativePolarityConditions(types(asked.Negative)...))
	}
	if asked.StepCounterIfOnly != nil {
		options = append(options, legacy.WithStepCounterIfOnly(types(asked.StepCounterIfOnly)...))
	}
	return options
}

func types(names []string) []clusterv1.ConditionType {
	all := make([]clusterv1.ConditionType, 0, len(names))
	for _, name := range names {
		all = append(all, clusterv1.ConditionType(name))
	}
	return all
}

func versions(texts []string, said *answer) error {
	parsed := []semver.Version{}
	for _, text := range texts {
		one, err := semver.ParseTolerant(text)
		if err != nil {
			said.Texts = append(said.Texts, "")
			continue
		}
		said.Texts = append(said.Texts, one.String())
		parsed = append(parsed, one)
	}
	for i := range parsed {
		for j := range parsed {
			said.Numbers = append(said.Numbers, version.Compare(parsed[i], parsed[j], version.WithBuildTags()))
		}
	}
	return nil
}
