package cli

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/record"
)

// By default an environment is prepared if somebody waits, and if there is memory for it besides those that go on.
func TestPreparation(t *testing.T) {
	for _, c := range []struct {
		name        string
		preparation preparation
		waits       bool
		workers     int
		mode        string
		room, want  int
	}{
		{name: "agents that wait", waits: true, workers: 2, room: 3, want: 1},
		{name: "much memory", waits: true, workers: 2, room: 30, want: 1},
		{name: "agents that work", workers: 2, room: 30},
		{name: "no memory", waits: true, workers: 2, room: 2},
		{name: "more runs than memory", waits: true, workers: 4, room: 2},
		{name: "environments that are used again", waits: true, workers: 2, room: 30, mode: record.IsolatedReset},
		{name: "asked for", preparation: preparation{3, true}, workers: 2, room: 2, want: 3},
		{name: "asked for none", preparation: preparation{0, true}, waits: true, workers: 2, room: 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &matrix{workers: c.workers, apart: isolation{c.mode}}
			root := fstest.MapFS{"proc/meminfo": {
				Data: fmt.Appendf(nil, "MemAvailable: %d kB\n", (c.room*usualMemory+usualMemory/2)>>10),
			}}
			if got := c.preparation.of(m, c.waits, root); got != c.want {
				t.Errorf("%d are prepared, want %d", got, c.want)
			}
		})
	}
	four := fstest.MapFS{"proc/meminfo": {Data: fmt.Appendf(nil, "MemAvailable: %d kB\n", 4*usualMemory>>10)}}
	if n := usualWorkers(four, 3); n != 1 {
		t.Errorf("%d at a time beside 3 prepared ones, with memory for 4", n)
	}
}
