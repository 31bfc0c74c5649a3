// The oracle of the differential tests: it answers with what the real text/template, sprig and YAML libraries do.
//
// One JSON case per line on standard input, one JSON answer per line on standard output, in the same order.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/distribution/reference"
	yaml3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

type testCase struct {
	Mode     string          `json:"mode"`
	Text     string          `json:"text"`
	Data     json.RawMessage `json:"data"`
	Hardware json.RawMessage `json:"hardware"`
	Spec     json.RawMessage `json:"spec"`
	Value    json.RawMessage `json:"value"`
}

type answer struct {
	OK    bool   `json:"ok"`
	Stage string `json:"stage,omitempty"`
	Out   []byte `json:"out"`
	Error string `json:"error,omitempty"`
}

func fail(stage string, err error) answer {
	return answer{Stage: stage, Error: err.Error()}
}

// typed turns {"$int": 1} into an int64, as objects read with the dynamic client hold; all else is plain JSON.
func typed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if number, ok := v["$int"]; ok && len(v) == 1 {
			return int64(number.(float64))
		}
		for key := range v {
			v[key] = typed(v[key])
		}
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	}
	return value
}

func render(c testCase) (result answer) {
	data := map[string]any{}
	if len(c.Data) > 0 {
		if err := json.Unmarshal(c.Data, &data); err != nil {
			return fail("case", err)
		}
		typed(data)
	}
	if len(c.Hardware) > 0 {
		var hw legacyHardware
		if err := json.Unmarshal(c.Hardware, &hw); err != nil {
			return fail("case", err)
		}
		data["Hardware"] = hw
	}
	if len(c.Spec) > 0 {
		spec, err := throughStruct(c.Spec)
		if err != nil {
			return fail("case", err)
		}
		data["hardware"] = map[string]any{"spec": spec}
	}
	funcs := sprig.HermeticTxtFuncMap()
	for name, function := range ownFunctions {
		funcs[name] = function
	}
	t, err := template.New("workflow-template").Option("missingkey=error").Funcs(funcs).Parse(c.Text)
	if err != nil {
		return fail("parse", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&limited{buffer: &out, limit: 262144}, data); err != nil {
		return fail("exec", err)
	}
	return answer{OK: true, Out: out.Bytes()}
}

// throughStruct gives what templates see of a spec: decoded into the typed struct, and encoded again.
func throughStruct(body []byte) (any, error) {
	var spec hardwareSpec
	if err := json.Unmarshal(body, &spec); err != nil {
		return nil, err
	}
	body, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var value any
	err = json.Unmarshal(body, &value)
	return value, err
}

type limited struct {
	buffer *bytes.Buffer
	limit  int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.buffer.Len()+len(p) > l.limit {
		return 0, fmt.Errorf("rendered template exceeds %d bytes", l.limit)
	}
	return l.buffer.Write(p)
}

func loadYAML(c testCase) answer {
	out, err := yaml.YAMLToJSON([]byte(c.Text))
	if err != nil {
		return fail("yaml", err)
	}
	return answer{OK: true, Out: out}
}

func dumpYAML(c testCase) answer {
	var value any
	if err := json.Unmarshal(c.Value, &value); err != nil {
		return fail("case", err)
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		return fail("yaml", err)
	}
	return answer{OK: true, Out: out}
}

func document(c testCase) answer {
	var wf workflow
	if err := yaml3.Unmarshal([]byte(c.Text), &wf); err != nil {
		return fail("yaml", err)
	}
	out, err := json.Marshal(wf)
	if err != nil {
		return fail("json", err)
	}
	return answer{OK: true, Out: out}
}

func image(c testCase) answer {
	if _, err := reference.ParseNormalizedNamed(c.Text); err != nil {
		return fail("image", err)
	}
	return answer{OK: true}
}

func main() {
	modes := map[string]func(testCase) answer{
		"render": render, "yaml-load": loadYAML, "yaml-dump": dumpYAML, "document": document, "image": image,
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var c testCase
			if err := json.Unmarshal(line, &c); err != nil {
				encoder.Encode(fail("case", err))
			} else {
				encoder.Encode(modes[c.Mode](c))
			}
		}
		if err != nil {
			return
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}
