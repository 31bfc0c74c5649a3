package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// journal is what happened to all objects of a kind, one change for each version, as the watches of it told together.
type journal struct {
	kind     string
	since    int64 // it is whole behind this version
	versions []int64
	changes  map[int64]*record
}

// followed holds every watch against all of them: each version once, in order, none left out, the same for everybody.
func followed(of *history, seen *sightings) (*journal, []string) {
	found := &journal{kind: of.kind, changes: seen.versions, since: of.end}
	found.versions = slices.Sorted(maps.Keys(found.changes))
	var problems []string
	positions := map[int]int64{}
	for _, one := range of.watches {
		if one.Record == "watch" {
			if _, isResumed := positions[one.Watcher]; isResumed && positions[one.Watcher] != one.Version {
				problems = append(problems, fmt.Sprintf("watch %d of %s was resumed at %d and not at %d, where it was",
					one.Watcher, of.kind, one.Version, positions[one.Watcher]))
			}
			positions[one.Watcher] = one.Version
			found.since = min(found.since, one.Version)
			continue
		}
		if one.Record == "leave" {
			delete(positions, one.Watcher)
			continue
		}
		position, isOpen := positions[one.Watcher]
		if !isOpen {
			problems = append(problems, fmt.Sprintf("watch %d of %s was never opened", one.Watcher, of.kind))
		}
		if one.Version < position || one.Version == position && one.Type != "BOOKMARK" {
			problems = append(problems, fmt.Sprintf("watch %d of %s was told of %d (%s %s) again or too late: it was at %d",
				one.Watcher, of.kind, one.Version, one.Type, one.Name, position))
			continue
		}
		told := one.Version
		if one.Type == "BOOKMARK" {
			told++ // of what it stands for itself there must have been an event
		}
		if missed, isGap := found.first(position, told); isGap {
			problems = append(problems, fmt.Sprintf("watch %d of %s was never told of %d: at %d, %d came next",
				one.Watcher, of.kind, missed, position, one.Version))
		}
		if first := found.changes[one.Version]; one.Type != "BOOKMARK" && !isSame(first, one) {
			problems = append(problems, fmt.Sprintf("version %d of %s is two: %s for watch %d, %s for watch %d",
				one.Version, of.kind, describe(first), first.Watcher, describe(one), one.Watcher))
		}
		positions[one.Watcher] = one.Version
	}
	for _, watcher := range slices.Sorted(maps.Keys(positions)) {
		if missed, isGap := found.first(positions[watcher], of.end+1); isGap {
			problems = append(problems, fmt.Sprintf("watch %d of %s was never told of %d: it ended at %d",
				watcher, of.kind, missed, positions[watcher]))
		}
	}
	return found, append(problems, found.chain()...)
}

// first gives the first version behind one and before another.
func (j *journal) first(after, before int64) (int64, bool) {
	place, isThere := slices.BinarySearch(j.versions, after)
	if isThere {
		place++
	}
	if place < len(j.versions) && j.versions[place] < before {
		return j.versions[place], true
	}
	return 0, false
}

func isSame(a, b *record) bool {
	return a.Type == b.Type && a.Name == b.Name && a.Value == b.Value && a.UID == b.UID
}

func describe(one *record) string {
	return fmt.Sprintf("%s %s %s (uid %s)", one.Type, one.Name, one.Value, one.UID)
}

// chain holds every change against the one before it: what is added was not there, what is modified or deleted was.
func (j *journal) chain() []string {
	var problems []string
	is := map[string]*record{}
	for _, version := range j.versions {
		one, before := j.changes[version], is[j.changes[version].Name]
		switch {
		case one.Type == "ADDED" && before != nil:
			problems = append(problems, fmt.Sprintf("%s %s was added at %d, and was there since %d",
				j.kind, one.Name, version, before.Version))
		case one.Type != "ADDED" && before == nil:
			problems = append(problems, fmt.Sprintf("%s %s was %s at %d, and was not there", j.kind, one.Name, one.Type, version))
		case one.Type != "ADDED" && before.UID != one.UID:
			problems = append(problems, fmt.Sprintf("%s %s was %s at %d with another uid", j.kind, one.Name, one.Type, version))
		}
		if one.Type == "DELETED" {
			delete(is, one.Name)
		} else {
			is[one.Name] = one
		}
	}
	return problems
}

// written holds the changes against the operations: each was done by one that may have been carried out, and each that
// was acknowledged is there.
func (j *journal) written(of *history, seen *sightings) []string {
	var problems []string
	deletions := map[string][]*record{}
	for _, one := range of.operations {
		if one.Verb == "delete" && one.Outcome != refused {
			deletions[one.Name] = append(deletions[one.Name], one)
		}
		if one.Outcome != done || !changes(one) {
			continue
		}
		if one.Verb == "delete" {
			if _, isThere := seen.deleted[one.UID]; !isThere {
				problems = append(problems, fmt.Sprintf("the deletion of %s %s (uid %s) was acknowledged, and no watch told of it",
					of.kind, one.Name, one.UID))
			}
		} else if change := j.changes[one.Version]; one.Version > j.since &&
			(change == nil || change.Name != one.Name || change.Value != one.Value || change.UID != one.UID) {
			problems = append(problems, fmt.Sprintf("%s of %s %s to %s was acknowledged at %d, and no watch told of it",
				one.Verb, of.kind, one.Name, one.Value, one.Version))
		}
	}
	before := map[string]*record{}
	for _, version := range j.versions {
		one := j.changes[version]
		if one.Type == "DELETED" {
			isCause := func(by *record) bool {
				of := before[one.Name]
				return by.Call <= one.At && (by.UID == one.UID || by.Outcome == unknown &&
					(by.IfUID == "" || by.IfUID == one.UID) && (by.IfVersion == 0 || of != nil && by.IfVersion == of.Version))
			}
			if !slices.ContainsFunc(deletions[one.Name], isCause) {
				problems = append(problems, fmt.Sprintf("nobody deleted %s %s at %d", of.kind, one.Name, version))
			}
			continue
		}
		before[one.Name] = one
		by := seen.writers[one.Value]
		if by == nil || by.Outcome == refused || by.Name != one.Name || by.Call > one.At ||
			by.Outcome == done && by.Version != version {
			problems = append(problems, fmt.Sprintf("nobody wrote %s to %s %s at %d", one.Value, of.kind, one.Name, version))
		}
	}
	return problems
}

// listed holds every list against the changes: it shows what there was at its version, all of it.
func (j *journal) listed(of *history) []string {
	var problems []string
	lists := of.lists()
	slices.SortStableFunc(lists, func(a, b *record) int { return cmp.Compare(a.Version, b.Version) })
	is, next := map[string]*record{}, 0
	for _, list := range lists {
		for ; next < len(j.versions) && j.versions[next] <= list.Version; next++ {
			if one := j.changes[j.versions[next]]; one.Type == "DELETED" {
				delete(is, one.Name)
			} else {
				is[one.Name] = one
			}
		}
		if list.Version < j.since {
			continue
		}
		where := fmt.Sprintf("the list of %s at %d", of.kind, list.Version)
		shown := map[string]bool{}
		for _, item := range list.Items {
			if shown[item.Name] {
				problems = append(problems, fmt.Sprintf("%s shows %s twice", where, item.Name))
			}
			shown[item.Name] = true
			if there := is[item.Name]; there == nil {
				problems = append(problems, fmt.Sprintf("%s shows %s at %d, which was not there", where, item.Name, item.Version))
			} else if there.Version != item.Version || there.Value != item.Value || there.UID != item.UID {
				problems = append(problems, fmt.Sprintf("%s shows %s with %s at %d, which was %s at %d",
					where, item.Name, item.Value, item.Version, there.Value, there.Version))
			}
		}
		for name, there := range is {
			if !shown[name] {
				problems = append(problems, fmt.Sprintf("%s lacks %s, which was there at %d", where, name, there.Version))
			}
		}
	}
	return problems
}
