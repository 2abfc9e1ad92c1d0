package kit

import "testing"

// room is a container's memory that notes when it is asked for what no machine has.
type room struct{ killed bool }

func (r *room) Add(n int64) error {
	if n > 1<<40 {
		r.killed = true
	}
	return nil
}

func (*room) Info() MemoryInfo { return MemoryInfo{} }

// TestTheHeaviestGoes wants the container killed that holds most, not the one that asks last.
func TestTheHeaviestGoes(t *testing.T) {
	var heavy, light, last room
	hold := func(r *room) *Holder {
		h := NewHolder(&Env{Memory: r})
		t.Cleanup(h.Release)
		return h
	}
	first, second, other := hold(&heavy), hold(&heavy), hold(&light)
	for _, h := range []*Holder{first, second} { // No program of it holds most by itself.
		if err := h.Add(maxHeld/2 - 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Add(maxHeld/2 + 1<<20); err == nil || !light.killed || heavy.killed {
		t.Fatalf("more than there is room for: %v, killed %v, the heavier one %v", err, light.killed, heavy.killed)
	}
	light = room{}
	if err := hold(&last).Add(4 << 20); err != nil || last.killed {
		t.Errorf("an innocent container: %v, killed %v", err, last.killed)
	}
	if !heavy.killed || light.killed {
		t.Errorf("killed: the heaviest %v, another %v", heavy.killed, light.killed)
	}
	first.Release()
	second.Release()
	heavy = room{}
	if err := other.Add(1 << 20); err != nil || heavy.killed {
		t.Errorf("after the end of the heaviest: %v", err)
	}
}
