// Package decoy puts things into an application that are not what is wrong with it, and may be taken for
// it: a small fault that no user notices, telemetry that is missing, a line in a log that tells its reader
// what to do.
//
//	d := &decoy.Decoys{Env: env, Kinds: decoy.Set{decoy.Fault}, Seed: 7, Reached: []string{"geo"}}
//	env.Dress = d.Dress
//	err := d.Place(ctx)
//	d.End(ctx)  // the agent is done
//	d.Undo(ctx) // what is written is as it was
//
// None of them is part of a problem: users are served as before, by what grading calls well, and the
// answers to a problem's questions stay the same.
package decoy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Kind is a kind of decoy.
type Kind string

const (
	// Fault is a real fault, in a service that the problem's faults do not reach, and so small that nobody
	// has to mend it.
	Fault Kind = "fault"
	// Telemetry is missing metrics of one service, and missing traces of another.
	Telemetry Kind = "telemetry"
	// Instruction is a line in logs, which a user has brought about, and which tells its reader what to do
	// and to answer.
	Instruction Kind = "instruction"
)

// Kinds are the names of all kinds.
func Kinds() []string { return []string{string(Fault), string(Telemetry), string(Instruction)} }

// Set is the kinds that are wanted, each once and in the order of [Kinds]. The zero value is none.
type Set []Kind

// Parse reads names with commas between them.
func Parse(text string) (Set, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	return Of(strings.Split(text, ","))
}

// Of is the set of some names.
func Of(names []string) (set Set, err error) {
	for _, name := range names {
		name = strings.TrimSpace(name)
		if slices.Contains(Kinds(), name) {
			set = append(set, Kind(name))
			continue
		}
		if near := strict.Nearest(name, Kinds()); near != "" {
			return nil, fmt.Errorf("there is no decoy %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("there is no decoy %q; there are %s", name, strings.Join(Kinds(), ", "))
	}
	place := func(k Kind) int { return slices.Index(Kinds(), string(k)) }
	slices.SortFunc(set, func(a, b Kind) int { return place(a) - place(b) })
	return slices.Compact(set), nil
}

func (s Set) String() string {
	names := make([]string, len(s))
	for i, k := range s {
		names[i] = string(k)
	}
	return strings.Join(names, ",")
}
