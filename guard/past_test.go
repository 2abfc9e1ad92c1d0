package guard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const config = "/api/v1/namespaces/shop/configmaps/x"

// newPastSetup is a guard before a store whose revision is known. The object of config is in it, with the data 1.
func newPastSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{fake: newFake(t)}
	s.store = newVersions()
	s.startWith(t, Options{Upstream: &rest.Config{Host: s.URL, BearerToken: "lab"}, Revision: s.store.revision.Load})
	s.write(t, "1")
	return s
}

// write is what somebody else writes.
func (s *setup) write(t *testing.T, data string) {
	t.Helper()
	s.add(t, config, body(data))
}

func body(data string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","data":{"a":%q}}`, data)
}

// told is the journal in short.
func (s *setup) told(t *testing.T) (out []string) {
	t.Helper()
	for _, e := range s.journal() {
		out = append(out, fmt.Sprintf("%s %d: %s to %s", e.Verb, e.Status, data(t, e.Before), data(t, e.After)))
	}
	return out
}

// isPast reports whether a request is for the past.
func isPast(r *http.Request) bool { return r.URL.Query().Get("resourceVersionMatch") == "Exact" }

func TestBeforeIsReadBesideTheWrite(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	for _, test := range []struct {
		name, method, data, contentType string
		want                            string
	}{
		{"update", "PUT", "2", jsonType, "update 200: 1 to 2"},
		{"patch", "PATCH", "2", "application/merge-patch+json", "patch 200: 1 to 2"},
		{"apply", "PATCH", "2", apply, "patch 200: 1 to 2"},
		{"a write that changes nothing", "PUT", "1", jsonType, "update 200: 1 to 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newPastSetup(t)
			written := make(chan struct{})
			s.store.hook = func(r *http.Request) {
				if isPast(r) {
					<-written // The write is faster.
				}
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/x") {
					t.Error("the object was read before the write")
				}
			}
			// The journal waits for the read, so the write is seen in the fake.
			done := make(chan struct{})
			go func() {
				defer close(done)
				if code, answer := s.do(t, test.method, config, body(test.data), "Content-Type", test.contentType); code != 200 {
					t.Errorf("%d %s", code, answer)
				}
			}()
			s.waitForWrite(t)
			close(written)
			<-done
			if diff := cmp.Diff([]string{test.want}, s.told(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// waitForWrite waits until a write of the agent was answered: the fake takes one request at a time.
func (s *setup) waitForWrite(t *testing.T) {
	t.Helper()
	for {
		s.fake.mu.Lock()
		n := 0
		for _, r := range s.requests {
			if r.Method == http.MethodPut || r.Method == http.MethodPatch {
				n++
			}
		}
		s.fake.mu.Unlock()
		if n > 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("nothing was written")
		default:
			runtime.Gosched()
		}
	}
}

func TestBeforeWithOtherWriters(t *testing.T) {
	s := newPastSetup(t)
	var once sync.Once
	s.store.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			once.Do(func() { s.write(t, "theirs") })
		}
	}
	s.do(t, "PATCH", config, body("ours"), "Content-Type", "application/merge-patch+json")
	if diff := cmp.Diff([]string{"patch 200: theirs to ours"}, s.told(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.guard.Undo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := data(t, json.RawMessage(s.get(t, config))); got != "theirs" {
		t.Errorf("after an undo it is %s", got)
	}
}

func TestAConflictHasNoEffect(t *testing.T) {
	s := newPastSetup(t)
	stale := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"999"},"data":{"a":"2"}}`
	if code, _ := s.do(t, "PUT", config, stale); code != http.StatusConflict {
		t.Fatal(code)
	}
	if diff := cmp.Diff([]string{"update 409: 1 to nothing"}, s.told(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.guard.Undo(t.Context(), 1); err == nil {
		t.Error("there was something to take back")
	}
}

// TestAPastThatCannotBeRead: what is not known must not pass for something that was not there, which undo would delete.
func TestAPastThatCannotBeRead(t *testing.T) {
	s := newPastSetup(t)
	s.store.broken.Store(true)
	s.do(t, "PUT", config, body("2"))
	if diff := cmp.Diff([]string{"update 200: nothing to 2"}, s.told(t)); diff != "" {
		t.Error(diff)
	}
	out, err := s.guard.Undo(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !s.has(config) || !strings.Contains(out.String(), "could not be read") {
		t.Errorf("%s", out)
	}
}

func TestBeforeInATransaction(t *testing.T) {
	s := newPastSetup(t)
	s.store.hook = func(r *http.Request) {
		if isPast(r) {
			t.Error("whether there is room has to be known before the write")
		}
	}
	if _, err := s.guard.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.do(t, "PUT", config, body("2"))
	if _, err := s.guard.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := data(t, json.RawMessage(s.get(t, config))); got != "1" {
		t.Errorf("it is %s", got)
	}
}

// TestJournalAmongWriters has the agent and others write to one object at once: each entry of the journal is exactly the
// step from one version to the next.
func TestJournalAmongWriters(t *testing.T) {
	s := newPastSetup(t)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 30 {
				s.do(t, "PATCH", config, body(fmt.Sprintf("agent %d %d", w, i)), "Content-Type",
					"application/merge-patch+json")
			}
		})
		wg.Go(func() {
			for i := range 30 {
				s.write(t, fmt.Sprintf("other %d %d", w, i))
			}
		})
	}
	wg.Wait()
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	for _, e := range s.journal() {
		all, err := fields(e.After)
		if err != nil {
			t.Fatal(err)
		}
		want := s.store.at(config, versionOf(all)-1)
		if data(t, e.Before) != data(t, withoutManaged([]byte(want))) {
			t.Errorf("write %d: before it was %s, not %s", e.Seq, want, e.Before)
		}
	}
}
