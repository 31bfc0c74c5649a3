package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// What became of a request. Of a write whose answer never came nobody knows: it may have happened, at any time from then
// on. One that was refused did not happen, and does not happen later.
const (
	done    = "ok"
	refused = "refused"
	unknown = "unknown"
)

// It could not be stored; that says nothing of the object.
const unavailable = "ServiceUnavailable"

// record is one line of a history: an operation, the opening of a watch, an event of it, a fault, or the end.
type record struct {
	Record string `json:"record"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	At     int64  `json:"at"`

	Client  int    `json:"client"`
	Verb    string `json:"verb"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Value   string `json:"value"`
	Version int64  `json:"version"`
	UID     string `json:"uid"`
	// preconditions: what the object must be for the write to be carried out
	IfVersion int64  `json:"ifVersion"`
	IfUID     string `json:"ifUid"`
	Items     []item `json:"items"`

	Watcher int    `json:"watcher"`
	Type    string `json:"type"`

	What string `json:"what"`
}

// item is an object as a list shows it.
type item struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Version int64  `json:"version"`
	UID     string `json:"uid"`
}

// history is what clients saw of one kind of objects, in the order of the file.
type history struct {
	kind       string
	operations []*record
	watches    []*record // openings, events, and who left
	end        int64     // every watch was followed up to this version
}

func (h *history) lists() []*record {
	var found []*record
	for _, one := range h.operations {
		if one.Verb == "list" && one.Outcome == done {
			found = append(found, one)
		}
	}
	return found
}

func changes(one *record) bool {
	return one.Verb == "create" || one.Verb == "update" || one.Verb == "delete"
}

type recorded struct {
	kinds  []*history
	faults []*record
	last   int64 // no time in it is later
}

var verbs = map[string]bool{"create": true, "update": true, "delete": true, "get": true, "list": true}
var reasons = map[string]bool{"AlreadyExists": true, "Conflict": true, "NotFound": true, unavailable: true}

func read(path string) (*recorded, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 1<<28)
	all, byKind := &recorded{}, map[string]*history{}
	for number := 1; lines.Scan(); number++ {
		one := &record{}
		if err := json.Unmarshal(lines.Bytes(), one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		all.last = max(all.last, one.At, one.Call, one.Return)
		if one.Record == "fault" {
			all.faults = append(all.faults, one)
			continue
		}
		of := byKind[one.Kind]
		if of == nil {
			of = &history{kind: one.Kind}
			byKind[one.Kind] = of
			all.kinds = append(all.kinds, of)
		}
		if err := of.add(one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	for _, of := range all.kinds {
		if of.end == 0 {
			return nil, fmt.Errorf("%s: the history of %s has no end", path, of.kind)
		}
	}
	return all, lines.Err()
}

func (h *history) add(one *record) error {
	switch one.Record {
	case "operation":
		isRefused := one.Outcome == refused && reasons[one.Reason]
		if !verbs[one.Verb] || !isRefused && one.Outcome != done && one.Outcome != unknown {
			return fmt.Errorf("no operation: %s %s %s", one.Verb, one.Outcome, one.Reason)
		}
		h.operations = append(h.operations, one)
	case "watch", "leave", "event":
		h.watches = append(h.watches, one)
	case "end":
		h.end = one.Version
	default:
		return fmt.Errorf("no record: %q", one.Record)
	}
	return nil
}
