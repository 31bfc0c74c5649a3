package main

import (
	"cmp"
	"fmt"
	"slices"
)

// inRealTime holds the versions of all kinds against the clock: what began after something had ended got a later
// version, and a list that began after a write had been answered stands for that version or a later one.
func inRealTime(all *recorded, seen map[string]*sightings) []string {
	var begun, ended []*record
	for _, of := range all.kinds {
		for _, one := range of.operations {
			if one.Outcome == done && one.Version != 0 && (one.Verb == "create" || one.Verb == "update" || one.Verb == "list") {
				begun, ended = append(begun, one), append(ended, one)
			}
		}
	}
	slices.SortFunc(begun, func(a, b *record) int { return cmp.Compare(a.Call, b.Call) })
	slices.SortFunc(ended, func(a, b *record) int { return cmp.Compare(a.Return, b.Return) })
	var problems []string
	var newest *record
	next := 0
	for _, one := range begun {
		for ; next < len(ended) && ended[next].Return < one.Call; next++ {
			if newest == nil || ended[next].Version > newest.Version {
				newest = ended[next]
			}
		}
		if newest != nil && one.Version < newest.Version && !repeats(one, seen[one.Kind]) {
			problems = append(problems, fmt.Sprintf("client %d's %s of %s %s got version %d after client %d's %s had got %d",
				one.Client, one.Verb, one.Kind, one.Name, one.Version, newest.Client, newest.Verb, newest.Version))
		}
	}
	return problems
}

// A write that changes nothing is answered with the version that there is.
func repeats(one *record, seen *sightings) bool {
	return one.Verb == "update" && seen.writers[one.Value] != one
}
