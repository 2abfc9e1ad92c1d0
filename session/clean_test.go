package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// differing is a cloud in which so many resets leave something behind.
type differing struct {
	*cloudtest.Cloud
	bad, resets int
	diff        error
}

func (d *differing) Reset(ctx context.Context, s cloud.Snapshot) error {
	d.resets++
	return d.Cloud.Reset(ctx, s)
}

func (d *differing) Diff(context.Context, cloud.Snapshot) ([]string, error) {
	if d.diff != nil {
		return nil, d.diff
	}
	if d.bad > 0 {
		d.bad--
		return []string{"/registry/pods/test-shop/left-over"}, nil
	}
	return nil, nil
}

// keptShop is a shop that is kept in such a cloud, after a run.
func keptShop(t *testing.T, d *differing, results string) *Local {
	t.Helper()
	w := newShop(t)
	d.Cloud = w.Cloud
	l := &Local{Cloud: d, admit: w.admitted}
	t.Cleanup(l.Close)
	if err := l.Keep(t.Context(), shop()); err != nil {
		t.Fatal(err)
	}
	if w.Local = l; w.outcome(t, problem.Detection, scripted(agent.Call("submit", "Yes")), results).Class != Solved {
		t.Fatal("the first run is not solved")
	}
	return l
}

// A reset that leaves something behind is done again. If that does not help, who wants a proof is told, and a run that
// takes place nevertheless has it in its record.
func TestUnclean(t *testing.T) {
	results := t.TempDir()
	for _, c := range []struct {
		name string
		differing
		text   string
		resets int
	}{
		{name: "clean", resets: 1},
		{name: "clean at last", differing: differing{bad: 1}, resets: 2},
		{
			name: "unclean", differing: differing{bad: 3}, resets: 2,
			text: "the environment is not proved to be as it was before its last run: " +
				"1 of its objects differ, such as pods/test-shop/left-over",
		},
		{
			name: "cannot be compared", differing: differing{diff: errors.New("etcd is gone")}, resets: 1,
			text: "the environment is not proved to be as it was before its last run: it cannot be compared: etcd is gone",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := c.bad
				c.bad = 0
				l := keptShop(t, &c.differing, results)
				c.bad = left
				err := l.Renew(t.Context(), 7, nil)
				if errors.Is(err, errUnclean) != (c.text != "") || c.resets != c.differing.resets {
					t.Fatalf("%v after %d resets", err, c.differing.resets)
				}
				if err != nil && err.Error() != c.text {
					t.Error(err)
				}
				if again := l.Renew(t.Context(), 7, nil); fmt.Sprint(again) != fmt.Sprint(err) || c.resets != c.differing.resets {
					t.Errorf("once more: %v after %d resets", again, c.differing.resets)
				}
				var told []record.Isolation
				_, err = l.Prepare(t.Context(), Setting{Problem: shopProblem(problem.Detection), Seed: 7}, func(kind string, data any) {
					if kind == record.IsolationEvent {
						told = append(told, data.(record.Isolation))
					}
				})
				want := record.Isolation{Mode: record.IsolatedReset, Before: 1, Compared: c.text == ""}
				if err != nil {
					t.Fatal(err)
				}
				_, want.Why, _ = strings.Cut(c.text, "run: ")
				if len(told) != 1 || told[0] != want || c.resets != c.differing.resets {
					t.Errorf("told %+v, after %d resets", told, c.differing.resets)
				}
			})
		})
	}
}

// Who is asked to prove it, in a cloud that cannot tell, has no proof.
func TestUnproved(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if err := w.Keep(t.Context(), shop()); err != nil {
			t.Fatal(err)
		}
		if err := w.Renew(t.Context(), 7, nil); err != nil {
			t.Errorf("before any run: %v", err)
		}
		w.outcome(t, problem.Detection, scripted(agent.Call("submit", "Yes")), results)
		if err := w.Renew(t.Context(), 7, nil); !errors.Is(err, errUnclean) {
			t.Error(err)
		}
	})
}

// late is a cloud whose controllers are done when two snapshots were taken.
type late struct {
	*cloudtest.Cloud
	snapshots int
}

func (l *late) Snapshot(ctx context.Context) (cloud.Snapshot, error) {
	l.snapshots++
	return l.Cloud.Snapshot(ctx)
}

func (l *late) Diff(context.Context, cloud.Snapshot) ([]string, error) {
	if l.snapshots < 3 {
		return []string{"/registry/endpointslices/test-shop/cart"}, nil
	}
	return nil, nil
}

// What an application is reset to is taken when controllers are done with it.
func TestSettledSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{Cloud: newShop(t).Cloud}
		if s, err := settledSnapshot(t.Context(), l); err != nil || s == nil || l.snapshots != 3 {
			t.Errorf("%v after %d snapshots, %v", s, l.snapshots, err)
		}
	})
}
