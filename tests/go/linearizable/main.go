// linearizable holds a history of many clients of a Kubernetes API, one JSON record for each line of a file, against
// what the API promises: every object is linearizable (by porcupine), lists show one moment, and watches tell of each
// version once and in order. It prints what it found as JSON; the history of an object that is not linearizable is shown
// in a page beside the file.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const shown = 10

type violation struct {
	Check   string   `json:"check"`
	Says    []string `json:"says"`
	Count   int      `json:"count"`
	Picture string   `json:"picture,omitempty"`
}

type finding struct {
	Operations int `json:"operations"`
	Unanswered int `json:"unanswered"`
	Happened   int `json:"happened"` // of those without an answer
	Objects    int `json:"objects"`
	Versions   int `json:"versions"`
	Lists      int `json:"lists"`
	Watches    int `json:"watches"`
	Events     int `json:"events"`

	Violations []violation `json:"violations"`
}

func main() {
	timeout := flag.Duration("timeout", 2*time.Minute, "for one object")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: linearizable [-timeout DURATION] HISTORY")
		os.Exit(2)
	}
	all, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	found := check(all, *timeout, flag.Arg(0)+".html")
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func check(all *recorded, timeout time.Duration, picture string) *finding {
	found := &finding{Violations: []violation{}}
	objects, sighted := []*partition{}, map[string]*sightings{}
	for _, of := range all.kinds {
		seen := look(of)
		sighted[of.kind] = seen
		changes, problems := followed(of, seen)
		found.add("watches", problems)
		found.add("writes", changes.written(of, seen))
		found.add("lists", changes.listed(of))
		found.count(of, seen)
		objects = append(objects, partitions(of, seen, all.last)...)
	}
	found.Objects = len(objects)
	found.add("order", inRealTime(all, sighted))
	found.linearize(all, objects, timeout, picture)
	return found
}

func (f *finding) add(check string, problems []string) {
	if len(problems) > 0 {
		f.Violations = append(f.Violations, violation{check, problems[:min(len(problems), shown)], len(problems), ""})
	}
}

func (f *finding) count(of *history, seen *sightings) {
	f.Operations += len(of.operations)
	f.Versions += len(seen.versions)
	f.Lists += len(of.lists())
	for _, one := range of.operations {
		if one.Outcome != unknown {
			continue
		}
		f.Unanswered++
		if seen.happened(one) {
			f.Happened++
		}
	}
	for _, one := range of.watches {
		switch one.Record {
		case "watch":
			f.Watches++
		case "event":
			f.Events++
		}
	}
}

// linearize asks porcupine about each object, and shows the smallest history that it refuses.
func (f *finding) linearize(all *recorded, objects []*partition, timeout time.Duration, picture string) {
	var problems []string
	var worst *partition
	for _, one := range objects {
		switch porcupine.CheckOperationsTimeout(register, one.operations, timeout) {
		case porcupine.Unknown:
			problems = append(problems, fmt.Sprintf("%s %s: %d operations were not decided on in %s",
				one.kind, one.name, len(one.operations), timeout))
		case porcupine.Illegal:
			one.operations = smallest(one.operations, timeout)
			problems = append(problems, fmt.Sprintf("%s %s is not linearizable: %d operations show it",
				one.kind, one.name, len(one.operations)))
			if worst == nil || len(one.operations) < len(worst.operations) {
				worst = one
			}
		}
	}
	f.add("objects", problems)
	if worst == nil {
		return
	}
	last := &f.Violations[len(f.Violations)-1]
	for _, one := range worst.operations {
		last.Says = append(last.Says, fmt.Sprintf("%d to %d, client %d: %s", one.Call, one.Return, one.ClientId, one.Input))
	}
	if err := draw(all, worst, timeout, picture); err != nil {
		last.Says = append(last.Says, fmt.Sprintf("no picture: %s", err))
		return
	}
	last.Picture = picture
}

func draw(all *recorded, of *partition, timeout time.Duration, picture string) error {
	_, info := porcupine.CheckOperationsVerbose(register, of.operations, timeout)
	from, to := of.operations[0].Call, int64(0)
	for _, one := range of.operations {
		from, to = min(from, one.Call), max(to, one.Return)
	}
	var marks []porcupine.Annotation
	for _, one := range all.faults {
		if one.At >= from && one.At <= to {
			marks = append(marks, porcupine.Annotation{Tag: "faults", Start: one.At, Description: one.What})
		}
	}
	info.AddAnnotations(marks)
	return porcupine.VisualizePath(register, info, picture)
}
