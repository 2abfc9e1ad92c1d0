package kept

import (
	"strconv"
	"testing"
)

func TestMemory(t *testing.T) {
	var m Memory
	if w := m.Get("a"); w != nil {
		t.Errorf("an empty memory has %q", w)
	}
	m.Put("a", []byte("one"))
	m.Put("a", []byte("one, made again"))
	if w := m.Get("a"); string(w) != "one, made again" {
		t.Errorf("a is %q", w)
	}
	// The one that somebody still uses stays, the others make room.
	for i := range 3 * MaxWorlds {
		m.Put(strconv.Itoa(i), []byte{byte(i)})
		if m.Get("a") == nil {
			t.Fatalf("after %d others, the one that is used is gone", i)
		}
	}
	if n := len(m.worlds); n != MaxWorlds {
		t.Errorf("there are %d", n)
	}
	if m.Get("0") != nil || m.Get(strconv.Itoa(3*MaxWorlds-1)) == nil {
		t.Error("the last used one was forgotten, or the first one not")
	}
}
