package local

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// seen reports whether a journal has a line.
func seen(journal, line string) bool {
	b, _ := os.ReadFile(journal)
	return slices.Contains(strings.Split(string(b), "\n"), line)
}

// killedRuns are the runs of [TestKilled].
func killedRuns() []Run {
	return Cross([]Contestant{{Agent: "a"}, {Agent: "b"}}, []string{"slow"}, 1, 12)
}

// TestKilled kills a campaign, and processes of its runs, at random moments, over and over. In the end every run is
// finished once: no finished one was run again, and none has two records that count. And all that was paid is known.
func TestKilled(t *testing.T) {
	t.Run("a process each", killed)
	t.Run("runners", func(t *testing.T) {
		t.Setenv(warm, "yes")
		killed(t)
	})
	t.Run("processes ahead", func(t *testing.T) {
		t.Setenv(ahead, "yes")
		killed(t)
	})
}

func killed(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	kills := 0
	for !resume(t, dir, time.Duration(r.IntN(60))*time.Millisecond, r) {
		kills++
	}
	f, err := Open(t.Context(), filepath.Join(dir, "folder"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	past, err := f.past()
	if err != nil {
		t.Fatal(err)
	}
	begun := map[string]int{}
	for _, line := range lines(t, journal) {
		what, who, _ := strings.Cut(line, " ")
		if what == "begun" && begun[who] < 0 {
			t.Errorf("%s was finished, and run again", who)
		}
		if begun[who]++; what == "ended" {
			begun[who] = -1 << 20
		}
	}
	for _, run := range killedRuns() {
		counted := 0
		for _, r := range past[run.key()] {
			if r.Counts() {
				counted++
			}
		}
		if counted != 1 {
			t.Errorf("%v has %d records that count", run, counted)
		}
	}
	spent, err := f.spent(past)
	paying, paid := 0, 0
	for _, line := range lines(t, journal+paidSuffix) {
		if line == "paid" {
			paid++
		} else {
			paying++
		}
	}
	if err != nil || spent < price*float64(paid) || spent > price*float64(paying) {
		t.Errorf("$%v are known to be spent, want %d to %d times %v: %v", spent, paid, paying, price, err)
	}
	t.Logf("%d campaigns were killed; %d runs paid for", kills, paid)
}

// resume goes on with the campaign, kills one of its workers and then itself after a while, and reports whether it had
// ended before.
func resume(t *testing.T, dir string, after time.Duration, r *rand.Rand) bool {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, dir)
	cmd.Env = append(os.Environ(), role+"=campaign")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	before := size(filepath.Join(dir, "journal"))
	for size(filepath.Join(dir, "journal")) == before && len(ended) == 0 { // Until it has begun a run.
		time.Sleep(time.Millisecond)
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			return true
		case <-timer.C:
			if children := childrenOf(cmd.Process.Pid); len(children) > 0 && r.IntN(3) > 0 {
				if p, err := os.FindProcess(children[r.IntN(len(children))]); err == nil {
					_ = p.Kill() // It may have ended by itself.
				}
				timer.Reset(time.Duration(r.IntN(20)) * time.Millisecond)
				continue
			}
			_ = cmd.Process.Kill()
			<-ended
			return false
		}
	}
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// childrenOf are the processes that a process has started, as far as the system tells.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(b)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
