package local

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/session"
)

// While there is no room no more processes are started, and once there is they are: nothing is given up. One that is
// alone is started in any case.
func TestRoom(t *testing.T) {
	for _, test := range []struct {
		name        string
		warm, ahead bool
	}{
		{name: "a process each"},
		{name: "runners", warm: true},
		{name: "processes ahead", ahead: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := world(t, filepath.Join(t.TempDir(), "folder"))
			c.Workers, c.Runs = 3, Cross([]Contestant{{Agent: "a"}}, []string{"slow"}, 1, 12)
			if test.warm {
				c.warmUp()
			}
			if test.ahead {
				c.Ahead = 2
			}
			under, most, asked := 0, 0, 0
			c.Began = func(*Try) {
				under++
				most = max(most, under)
			}
			c.Ended = func(_ *Try, r *Result) { under-- }
			c.Room = func(tries []*Try) bool {
				if asked++; len(tries) == 0 {
					t.Error("asked beside nobody")
				}
				return false
			}
			sum, err := c.Run(t.Context())
			if err != nil || sum.Left != 0 || sum.Why != nil {
				t.Fatalf("%+v, %v", sum, err)
			}
			if most != 1 || asked == 0 {
				t.Errorf("%d at a time without room, asked %d times", most, asked)
			}
			c.Folder.Close()
		})
	}
}

// Room that comes while a run goes on is seen without waiting for its end.
func TestRoomComes(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers, c.Runs = 2, campaignRuns("patient", "solved")
	ends := collect(c)
	c.Began = func(try *Try) {
		if try.Problem == "solved" { // The other one waits for this.
			if err := note(journal, "ahead a solved 1"); err != nil {
				t.Error(err)
			}
		}
	}
	looks := 0
	c.Room = func([]*Try) bool {
		looks++
		return looks > 2
	}
	sum, err := c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	if looks < 3 || !slices.Contains(*ends, "patient solved 0") {
		t.Errorf("looked %d times: %v", looks, *ends)
	}
}

// A try is settled once its agent has had its turn, whatever comes later.
func TestSettled(t *testing.T) {
	try := &Try{Dir: t.TempDir()}
	if try.Settled() {
		t.Error("settled before anything")
	}
	file := filepath.Join(try.Dir, "1.jsonl")
	seen := map[string]bool{}
	err := leaveRecord(file, Run{"a", "", "p", 1}, session.Solved, 0, func(before string) { seen[before] = try.Settled() })
	if err != nil {
		t.Fatal(err)
	}
	if seen["phase"] || seen["briefing"] || !seen["step"] || !seen["verdict"] {
		t.Errorf("settled before: %v", seen)
	}
}
