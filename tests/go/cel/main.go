// Command cel asks rules of Kubernetes schemas as kube-apiserver does: the reference for ours.
//
// Each line of input is a case: a schema with rules (as in a CustomResourceDefinition), and values to ask them of.
// Each line of output is its answer: why the rules do not compile, or the faults of each value.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type pair struct {
	Value json.RawMessage `json:"value"`
	Old   json.RawMessage `json:"old,omitempty"`
}

type question struct {
	Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
	Values []pair                          `json:"values"`
}

type fault struct {
	Type   string `json:"type"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

type answer struct {
	Compile []string `json:"compile,omitempty"`
	// Estimates of the rules, and of their messages.
	Costs        []uint64  `json:"costs,omitempty"`
	MessageCosts []uint64  `json:"messageCosts,omitempty"`
	Values       [][]fault `json:"values"`
	// What each rule costs for each value; nothing where it cannot be evaluated.
	Actual [][]uint64 `json:"actual"`
	Broken string     `json:"broken,omitempty"`
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	err := utiljson.Unmarshal(raw, &value)
	return value, err
}

// actual says what each rule costs for a value.
func actual(results []cel.CompilationResult, structural *schema.Structural, value, old any) []uint64 {
	costs := []uint64{}
	for _, result := range results {
		given := map[string]any{"self": cel.UnstructuredToVal(value, structural)}
		if old != nil {
			given["oldSelf"] = cel.UnstructuredToVal(old, structural)
		}
		_, details, _ := result.Program.ContextEval(context.Background(), given)
		if details == nil || details.ActualCost() == nil {
			costs = append(costs, 0)
		} else {
			costs = append(costs, *details.ActualCost())
		}
	}
	return costs
}

func ask(line []byte) (found answer) {
	defer func() {
		if problem := recover(); problem != nil {
			found = answer{Broken: fmt.Sprint(problem)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Broken: err.Error()}
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&asked.Schema, &internal, nil); err != nil {
		return answer{Broken: err.Error()}
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return answer{Broken: err.Error()}
	}
	declared := model.SchemaDeclType(structural, false)
	envs := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(structural, declared, celconfig.PerCallLimit, envs, cel.NewExpressionsEnvLoader())
	if err != nil {
		return answer{Broken: err.Error()}
	}
	for _, result := range results {
		found.Costs = append(found.Costs, result.MaxCost)
		found.MessageCosts = append(found.MessageCosts, result.MessageExpressionMaxCost)
		if result.Error != nil {
			found.Compile = append(found.Compile, result.Error.Detail)
		} else if result.MessageExpressionError != nil {
			found.Compile = append(found.Compile, result.MessageExpressionError.Detail)
		}
	}
	if len(found.Compile) > 0 {
		return found
	}
	validator := cel.NewValidator(structural, false, celconfig.PerCallLimit)
	for _, one := range asked.Values {
		value, err := decode(one.Value)
		if err != nil {
			return answer{Broken: err.Error()}
		}
		old, err := decode(one.Old)
		if err != nil {
			return answer{Broken: err.Error()}
		}
		faults := []fault{}
		errs, _ := validator.Validate(context.Background(), field.NewPath("self"), structural, value, old, celconfig.RuntimeCELCostBudget)
		for _, problem := range errs {
			faults = append(faults, fault{string(problem.Type), problem.Field, problem.Detail})
		}
		found.Values = append(found.Values, faults)
		found.Actual = append(found.Actual, actual(results, structural, value, old))
	}
	return found
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 64<<20)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		if err := output.Encode(ask(input.Bytes())); err != nil {
			panic(err)
		}
	}
}
