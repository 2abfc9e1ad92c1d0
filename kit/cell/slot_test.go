package cell

import (
	"context"
	"errors"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

// ledger is a container's memory, which the container is known by.
type ledger struct{ _ int }

func (*ledger) Add(int64) error      { return nil }
func (*ledger) Info() kit.MemoryInfo { return kit.MemoryInfo{} }

// A container that has all the cells it may have waits, and others do not.
func TestSlots(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	greedy, modest := &ledger{}, &ledger{}
	var frees []func()
	for range maxOfOne {
		free, err := slot(t.Context(), greedy)
		if err != nil {
			t.Fatal(err)
		}
		frees = append(frees, free)
	}
	if _, err := slot(ended, greedy); !errors.Is(err, context.Canceled) {
		t.Errorf("one more: %v", err)
	}
	free, err := slot(t.Context(), modest)
	if err != nil {
		t.Fatal(err)
	}
	free()
	frees[0]()
	frees[0]() // It is given back once.
	if free, err = slot(t.Context(), greedy); err != nil {
		t.Fatal(err)
	}
	free()
	for _, free := range frees {
		free()
	}
	if len(slots) != 0 || len(shares.of) != 0 {
		t.Errorf("%d places and %d shares are left", len(slots), len(shares.of))
	}
}
