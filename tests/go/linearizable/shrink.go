package main

import (
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// smallest finds a small part of a history that is not linearizable either: the shortest beginning of it, without the
// reads and refusals that do not matter.
func smallest(all []porcupine.Operation, timeout time.Duration) []porcupine.Operation {
	isIllegal := func(some []porcupine.Operation) bool {
		return porcupine.CheckOperationsTimeout(register, some, timeout) == porcupine.Illegal
	}
	returns := make([]int64, 0, len(all))
	for _, one := range all {
		returns = append(returns, one.Return)
	}
	slices.Sort(returns)
	shortest := sort.Search(len(returns)-1, func(number int) bool { return isIllegal(until(all, returns[number])) })
	found := until(all, returns[shortest])
	deadline := time.Now().Add(timeout)
	for number := len(found) - 1; number >= 0 && time.Now().Before(deadline); number-- {
		if found[number].Input.(*step).mutates() {
			continue
		}
		if without := slices.Delete(slices.Clone(found), number, number+1); isIllegal(without) {
			found = without
		}
	}
	return found
}

// until is what was known of a history at a time: what had not been answered by then may or may not have happened.
func until(all []porcupine.Operation, time int64) []porcupine.Operation {
	var found []porcupine.Operation
	for _, one := range all {
		if one.Call > time {
			continue
		}
		if one.Return > time {
			input := *one.Input.(*step)
			if !input.mutates() {
				continue
			}
			input.maybe = true
			one.Input, one.Return = &input, time+1
		}
		found = append(found, one)
	}
	return found
}
