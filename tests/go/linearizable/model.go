package main

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is one object, as a client could find it.
type state struct {
	exists  bool
	version int64 // 0 while nobody has seen it
	value   string
	uid     string
	// Whatever is written next gets a later version than this. Lists move it on, too: at their version they saw all
	// that had happened.
	floor int64
}

// step is what an operation does to one object, and what it answered.
type step struct {
	verb    string
	value   string
	version int64 // answered; 0 where the answer does not say
	uid     string
	// of a list: the version that it stands for
	listed    int64
	ifVersion int64
	ifUID     string
	refusal   string
	// It may never have happened: where it cannot, it did nothing.
	maybe bool
}

// mutates tells whether it can change the object: all others may be left out of a history that is not linearizable.
func (s *step) mutates() bool {
	return s.refusal == "" && (s.verb == "create" || s.verb == "update" || s.verb == "delete")
}

func (s *step) meets(is state) bool {
	return (s.ifVersion == 0 || s.ifVersion == is.version) && (s.ifUID == "" || s.ifUID == is.uid)
}

// apply is the sequential specification of one object in a Kubernetes API.
func (s *step) apply(is state) (bool, state) {
	if s.refusal != "" {
		return s.refuses(is), is
	}
	switch s.verb {
	case "create":
		if is.exists || !s.isLater(is) {
			return false, is
		}
		return true, s.stored(is, s.uid)
	case "update":
		if !is.exists || !s.meets(is) {
			return false, is
		}
		if s.value == is.value { // a write that changes nothing makes no version
			return s.version == 0 || s.version == is.version, is
		}
		if !s.isLater(is) {
			return false, is
		}
		return true, s.stored(is, is.uid)
	case "delete":
		if !is.exists || !s.meets(is) || !s.isLater(is) {
			return false, is
		}
		return true, state{version: s.version, floor: max(is.floor+1, s.version)}
	case "get", "list":
		return s.reads(is)
	case "seen":
		return s.isSeen(is)
	}
	return false, is
}

func (s *step) isLater(is state) bool {
	return s.version == 0 || s.version > is.floor
}

func (s *step) stored(is state, uid string) state {
	return state{true, s.version, s.value, uid, max(is.floor+1, s.version)}
}

func (s *step) refuses(is state) bool {
	switch s.refusal {
	case "AlreadyExists":
		return is.exists
	case "NotFound":
		return !is.exists
	default: // Conflict
		return is.exists && !s.meets(is)
	}
}

func (s *step) reads(is state) (bool, state) {
	if s.value == "" && is.exists {
		return false, is
	}
	if s.value != "" && (!is.exists || is.version != s.version || is.value != s.value || is.uid != s.uid) {
		return false, is
	}
	if s.listed == 0 {
		return true, is
	}
	if is.floor > s.listed {
		return false, is
	}
	is.floor = s.listed
	return true, is
}

// A watch has told of a version: it has been written by now.
func (s *step) isSeen(is state) (bool, state) {
	if s.version <= is.floor {
		return true, is
	}
	// of deletions the version is known to watches alone
	if s.value == "" && !is.exists && is.version == 0 {
		is.version, is.floor = s.version, s.version
		return true, is
	}
	return false, is
}

var register = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(is, input, _ any) (bool, any) {
		one := input.(*step)
		isPossible, then := one.apply(is.(state))
		if !isPossible && one.maybe {
			return true, is
		}
		return isPossible, then
	},
	DescribeOperation: func(input, _ any) string { return input.(*step).String() },
	DescribeState:     func(is any) string { return is.(state).String() },
}

func (is state) String() string {
	if !is.exists {
		return fmt.Sprintf("absent (after %d)", is.floor)
	}
	return fmt.Sprintf("%s at %d, uid %s (after %d)", is.value, is.version, is.uid, is.floor)
}

func (s *step) String() string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s %s", s.verb, s.value)
	if s.ifVersion != 0 {
		fmt.Fprintf(text, " if at %d", s.ifVersion)
	}
	if s.ifUID != "" {
		fmt.Fprintf(text, " if uid %s", s.ifUID)
	}
	switch {
	case s.refusal != "":
		fmt.Fprintf(text, " → %s", s.refusal)
	case s.version != 0:
		fmt.Fprintf(text, " → %d", s.version)
	case s.verb == "get" || s.verb == "list":
		text.WriteString("→ absent")
	}
	if s.listed != 0 {
		fmt.Fprintf(text, " in the list of %d", s.listed)
	}
	if s.maybe {
		text.WriteString(" (no answer)")
	}
	return text.String()
}
