// Package noise is the life of an application besides what goes wrong in it: benign changes before,
// around and after a fault, and just the same where there is none.
//
//	life := &noise.Life{Env: env, Level: noise.Calm, Seed: 7}
//	err := life.Release(ctx, injections) // the faults are injected in the middle of a release
//	life.Go()                            // healthy services are scaled while an agent works
//	life.Stop(ctx)
//
// Who is asked to find what is wrong in a system could otherwise look for what was touched last: in a
// system in which nothing else changes that is the fault.
//
// A change is benign: users are served as before, whoever looks at the system finds nothing wrong with
// it, and nothing that an agent has written is ever written again.
package noise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Level is how much goes on. The zero level is [None].
type Level string

const (
	// None leaves the application alone.
	None Level = "none"
	// Calm is as much as it takes for what was changed last, or is young, to tell nothing of a fault.
	Calm Level = "calm"
	// Busy is more of it, for as long as an agent works.
	Busy Level = "busy"
)

// Default is the level of a run that asks for none in particular.
const Default = Calm

// Levels are the names of all levels.
func Levels() []string { return []string{string(None), string(Calm), string(Busy)} }

// Parse reads a level. Empty is the default.
func Parse(text string) (Level, error) {
	switch {
	case text == "":
		return Default, nil
	case slices.Contains(Levels(), text):
		return Level(text), nil
	}
	if near := strict.Nearest(text, Levels()); near != "" {
		return "", fmt.Errorf("there is no level of noise %q; did you mean %q?", text, near)
	}
	return "", fmt.Errorf("there is no level of noise %q; there are %s", text, strings.Join(Levels(), ", "))
}

func (l Level) quiet() bool { return l == "" || l == None }
