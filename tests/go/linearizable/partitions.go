package main

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// partition is the history of one object.
type partition struct {
	kind, name string
	operations []porcupine.Operation
}

// sighting is a version of an object that somebody has seen.
type sighting struct {
	version int64
	uid     string
	at      int64 // when it was first seen, at the latest
}

// sightings tells which writes without an answer happened, and at which version: a value is written by one operation (and
// only repeated by others, which changes nothing), so that whoever has seen it has seen that write. Deletions that were
// answered are found by the uid.
type sightings struct {
	writers  map[string]*record
	values   map[string]sighting
	deleted  map[string]sighting // by uid
	versions map[int64]*record   // the first event of each version
}

func look(of *history) *sightings {
	found := &sightings{map[string]*record{}, map[string]sighting{}, map[string]sighting{}, map[int64]*record{}}
	for _, one := range of.operations {
		if first := found.writers[one.Value]; changes(one) && (first == nil || one.Call < first.Call) {
			found.writers[one.Value] = one
		}
		if one.Outcome != done {
			continue
		}
		if one.Verb == "get" || one.Verb == "update" || one.Verb == "create" {
			found.see(one.Value, sighting{one.Version, one.UID, one.Return})
		}
		for _, item := range one.Items {
			found.see(item.Value, sighting{item.Version, item.UID, one.Return})
		}
	}
	for _, one := range of.watches {
		if one.Record != "event" || one.Type == "BOOKMARK" {
			continue
		}
		if first := found.versions[one.Version]; first == nil || one.At < first.At {
			found.versions[one.Version] = one
		}
		if one.Type == "DELETED" {
			found.deleted[one.UID] = sighting{one.Version, one.UID, one.At}
		} else {
			found.see(one.Value, sighting{one.Version, one.UID, one.At})
		}
	}
	return found
}

func (f *sightings) see(value string, new sighting) {
	if old, isThere := f.values[value]; !isThere || new.at < old.at {
		f.values[value] = new
	}
}

// happened tells of a write without an answer whether it was carried out; of deletions that is not known.
func (f *sightings) happened(one *record) bool {
	_, isSeen := f.values[one.Value]
	return isSeen && f.writers[one.Value] == one
}

// partitions splits a history by object. What watches were told is part of it: a version that a watch has told of must
// have been written by then, and whoever reads later must find it or a later one.
func partitions(of *history, seen *sightings, last int64) []*partition {
	byName := map[string]*partition{}
	at := func(name string) *partition {
		if byName[name] == nil {
			byName[name] = &partition{kind: of.kind, name: name}
		}
		return byName[name]
	}
	for _, one := range of.operations {
		isTold := one.Outcome != unknown || changes(one)
		if one.Verb != "list" && one.Reason != unavailable && isTold {
			at(one.Name).add(operation(one, seen, last))
		}
	}
	for _, one := range seen.versions {
		value := one.Value
		if one.Type == "DELETED" {
			value = ""
		}
		at(one.Name).add(porcupine.Operation{
			Input: &step{verb: "seen", value: value, version: one.Version}, Call: one.At, Return: one.At,
		})
	}
	lists := of.lists()
	sorted := make([]*partition, 0, len(byName))
	for _, one := range byName {
		one.addLists(lists, last)
		slices.SortFunc(one.operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		sorted = append(sorted, one)
	}
	slices.SortFunc(sorted, func(a, b *partition) int { return len(a.operations) - len(b.operations) })
	return sorted
}

func (p *partition) add(one porcupine.Operation) {
	p.operations = append(p.operations, one)
}

func operation(one *record, seen *sightings, last int64) porcupine.Operation {
	input := &step{
		verb: one.Verb, value: one.Value, version: one.Version, uid: one.UID, ifVersion: one.IfVersion, ifUID: one.IfUID,
	}
	made := porcupine.Operation{ClientId: one.Client, Input: input, Call: one.Call, Return: one.Return}
	switch {
	case one.Outcome == refused && one.Verb != "get":
		input.refusal, input.version = one.Reason, 0
	case one.Outcome == refused:
		input.value, input.version = "", 0
	case one.Outcome == unknown:
		if found := seen.values[one.Value]; seen.happened(one) {
			input.version, input.uid, made.Return = found.version, found.uid, max(found.at, one.Call)
		} else {
			input.maybe, made.Return = true, last+1
		}
	case one.Verb == "delete":
		input.version = seen.deleted[one.UID].version
	}
	return made
}

// addLists makes a read of each list, while anybody was at work with the object; the lists of other times are held
// against the watches alone.
func (p *partition) addLists(lists []*record, last int64) {
	from, to := last+1, int64(0)
	for _, one := range p.operations {
		from = min(from, one.Call)
		if !one.Input.(*step).maybe {
			to = max(to, one.Return)
		}
	}
	for _, list := range lists {
		if list.Return < from || list.Call > to {
			continue
		}
		input := &step{verb: "list", listed: list.Version}
		for _, item := range list.Items {
			if item.Name == p.name {
				input.value, input.version, input.uid = item.Value, item.Version, item.UID
			}
		}
		p.add(porcupine.Operation{ClientId: list.Client, Input: input, Call: list.Call, Return: list.Return})
	}
}
