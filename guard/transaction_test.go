package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/guard/undo"
)

const configMaps = "/api/v1/namespaces/shop/configmaps"

// state is what the fake has, without what an API server adds.
func (s *setup) state() map[string]string {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	out := map[string]string{}
	for path, o := range s.objects {
		b, _ := json.Marshal(map[string]any{"data": o["data"], "labels": o["metadata"].(map[string]any)["labels"]})
		out[path] = string(b)
	}
	return out
}

// lab does an action of transactions by the agent's door.
func (s *setup) lab(t testing.TB, action string) (int, string) {
	t.Helper()
	method := http.MethodPost
	if action == "history" {
		method = http.MethodGet
	}
	code, body, err := s.request(t.Context(), method, TransactionPath+action, "")
	if err != nil {
		t.Fatal(err)
	}
	return code, body
}

// must is lab for actions that are done, and say something.
func (s *setup) must(t testing.TB, action string, words ...string) string {
	t.Helper()
	code, body := s.lab(t, action)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", action, code, body)
	}
	for _, w := range words {
		if !strings.Contains(body, w) {
			t.Errorf("%s does not say %q:\n%s", action, w, body)
		}
	}
	return body
}

// refused is lab for actions that are refused, with a reason.
func (s *setup) refused(t testing.TB, action, why string) {
	t.Helper()
	if code, body := s.lab(t, action); code != http.StatusBadRequest || !strings.Contains(body, why) {
		t.Errorf("%s: %d %s, want %q", action, code, body, why)
	}
}

func (s *setup) put(t *testing.T, name, value string) (int, string) {
	t.Helper()
	return s.do(t, "PUT", configMaps+"/"+name, `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"`+value+`"}}`)
}

func (s *setup) create(t *testing.T, name, value string) (int, string) {
	t.Helper()
	return s.do(t, "POST", configMaps, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+name+`"},"data":{"a":"`+value+`"}}`)
}

func newShop(t *testing.T) *setup {
	t.Helper()
	s := newSetup(t)
	for _, n := range []string{"x", "y"} {
		s.add(t, configMaps+"/"+n, `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
	}
	return s
}

func TestAbort(t *testing.T) {
	s := newShop(t)
	want := s.state()
	s.must(t, "begin", "Transaction 1 has begun", "Severity is not measured here")
	s.put(t, "x", "2")
	s.create(t, "new", "1")
	s.do(t, "PATCH", configMaps+"/x", `{"data":{"a":"3"}}`, "Content-Type", "application/merge-patch+json")
	s.do(t, "DELETE", configMaps+"/y", "")
	s.do(t, "DELETE", configMaps+"?labelSelector=a", "")
	s.must(t, "history", "Transaction 1 is open, with 5 of 20 writes", "delete configmaps y in shop, transaction 1")
	s.must(t, "abort", "Transaction 1 is aborted", "5 writes were taken back. All that they changed is as it was")
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
	s.must(t, "history", "No transaction is open", "delete configmaps y in shop, transaction 1, taken back")
	undoes := 0
	for _, e := range s.journal() {
		if e.Undoes > 0 {
			undoes++
		}
		if (e.Transaction == 1) == (e.Undoes > 0) {
			t.Errorf("%+v", e)
		}
	}
	if undoes < 4 {
		t.Errorf("%d writes of the undo are in the journal", undoes)
	}
	// A committed one stays.
	s.must(t, "begin", "Transaction 2")
	s.put(t, "x", "9")
	s.must(t, "commit", "Transaction 2 is committed, with 1 writes")
	if got := s.state()[configMaps+"/x"]; !strings.Contains(got, "9") {
		t.Errorf("x is %s", got)
	}
	s.must(t, "undo?n=1", "put back data.a")
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
}

func TestUndo(t *testing.T) {
	s := newShop(t)
	want := s.state()
	s.refused(t, "undo", "there is no write that could be taken back")
	s.put(t, "x", "2")
	s.put(t, "x", "3")
	s.do(t, "PUT", configMaps+"/none", "{}") // It is not there.
	s.do(t, "PUT", configMaps+"/x?dryRun=All", `{"kind":"ConfigMap"}`)
	s.put(t, "x", "4")
	s.must(t, "undo")
	if got := s.state()[configMaps+"/x"]; got == want[configMaps+"/x"] {
		t.Errorf("x is %s", got)
	}
	// An undo is nothing that could be undone, and there is nothing beyond the first write.
	s.must(t, "undo?n=1000000000000000000000000", "There were only 2 to take back")
	s.refused(t, "undo", "there is no write that could be taken back")
	s.refused(t, "undo?n=0", "at least 1")
	s.refused(t, "undo?n=-1", "is not a number")
	s.refused(t, "undo?n=1x", "is not a number")
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
	// In a transaction only what belongs to it can be taken back.
	s.put(t, "x", "5")
	s.must(t, "begin")
	s.refused(t, "undo", "transaction 1 has no write")
	s.put(t, "y", "6")
	s.must(t, "undo?n=9", "There were only 1")
	s.must(t, "commit")
	if got := s.state(); !strings.Contains(got[configMaps+"/x"], "5") || got[configMaps+"/y"] != want[configMaps+"/y"] {
		t.Errorf("%v", got)
	}
}

func TestWindow(t *testing.T) {
	s := newShop(t)
	want := s.state()
	s.must(t, "begin")
	for range 30 { // What is refused takes no room.
		if code, _ := s.put(t, "none", "1"); code != 404 {
			t.Fatalf("%d", code)
		}
	}
	for i := range Window {
		if code, body := s.put(t, "x", fmt.Sprint(i)); code != 200 {
			t.Fatalf("%d: %d %s", i, code, body)
		}
	}
	for range 100 {
		if code, body := s.put(t, "x", "over"); code != 403 || !strings.Contains(body, "transaction 1 is full: it has 20 writes") {
			t.Fatalf("%d %s", code, body)
		}
	}
	s.must(t, "abort", "20 writes were taken back")
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
}

func TestTransactionIsOne(t *testing.T) {
	s := newShop(t)
	s.refused(t, "commit", "no transaction is open")
	s.refused(t, "abort", "no transaction is open")
	var wg sync.WaitGroup
	codes := make([]int, 10)
	for i := range codes {
		wg.Go(func() { codes[i], _ = s.lab(t, "begin") })
	}
	wg.Wait()
	begun := 0
	for _, c := range codes {
		if c == http.StatusOK {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("%d transactions have begun: %v", begun, codes)
	}
	s.refused(t, "begin", "transaction 1 is open already")
	if code, _ := s.lab(t, "nonsense"); code != 404 {
		t.Errorf("an unknown action: %d", code)
	}
	if code, _ := s.do(t, "GET", TransactionPath+"begin", ""); code != 400 {
		t.Errorf("a begin that is read: %d", code)
	}
}

// TestTwoWriters has many clients write at once in one transaction: no more than its window get through, and all of that
// is taken back.
func TestTwoWriters(t *testing.T) {
	s := newShop(t)
	want := s.state()
	s.must(t, "begin")
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				s.put(t, "x", fmt.Sprint(i))
			case 1:
				s.create(t, fmt.Sprint("n", i), "1")
			case 2:
				s.get(t, configMaps+"/y") // Readers are free.
			}
		})
	}
	wg.Wait()
	n := 0
	for _, e := range s.journal() {
		if e.Status < 300 {
			n++
		}
	}
	s.must(t, "abort")
	if diff := cmp.Diff(want, s.state()); diff != "" || n != Window {
		t.Errorf("%d writes, %s", n, diff)
	}
}

func TestIrreversibleInTransaction(t *testing.T) {
	s := newShop(t)
	s.add(t, pods+"/web", `{"kind":"Pod","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/shop", `{"kind":"Namespace","apiVersion":"v1"}`)
	s.add(t, "/api/v1/namespaces/shop/persistentvolumeclaims/d", `{"kind":"PersistentVolumeClaim","apiVersion":"v1","spec":{"resources":{"requests":{"storage":"1Gi"}}}}`)
	requests := []struct{ method, path, body, why string }{
		{"POST", pods + "/web/exec?command=rm&command=-rf&command=/data", "", "what a command does in a container"},
		{"POST", pods + "/web/attach", "", "what is sent to a program"},
		{"POST", pods + "/web/portforward", "", "a forwarded port"},
		{"POST", "/api/v1/namespaces/shop/services/web/proxy/admin", "", "API server's proxy"},
		{"DELETE", "/api/v1/namespaces/shop", "", "all that is in the namespace"},
		{"DELETE", "/api/v1/namespaces/shop/persistentvolumeclaims/d", "", "the data of the volume"},
		{"DELETE", "/api/v1/namespaces/shop/persistentvolumeclaims", "", "the data of the volume"},
		{"PUT", "/api/v1/namespaces/shop/persistentvolumeclaims/d", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, "cannot shrink"},
		{"PATCH", pods + "/web/ephemeralcontainers", `{}`, "taken out of a pod"},
	}
	s.must(t, "begin")
	for _, r := range requests {
		code, body := s.do(t, r.method, r.path, r.body)
		if code != 403 || !strings.Contains(body, r.why) || !strings.Contains(body, "commit or abort the transaction first") {
			t.Errorf("%s %s: %d %s", r.method, r.path, code, body)
		}
	}
	if code, body := s.do(t, "POST", pods+"/web/exec?command=cat&command=/etc/hosts", ""); code == 403 {
		t.Errorf("a command that reads: %s", body)
	}
	s.must(t, "abort", "There was nothing to take back")
	for _, r := range requests {
		if code, body := s.do(t, r.method, r.path, r.body); code == 403 {
			t.Errorf("%s %s outside of a transaction: %d %s", r.method, r.path, code, body)
		}
	}
	n := 0
	for _, e := range s.journal() {
		if e.Irreversible != "" {
			n++
		}
	}
	if n != 2*len(requests) {
		t.Errorf("%d irreversible writes are in the journal", n)
	}
	s.must(t, "undo?n=2", "not restored: ")
}

// A policy may allow in a transaction what cannot be taken back. It is recorded as that, and an abort says what is left.
func TestIrreversibleAllowedInTransaction(t *testing.T) {
	s := newShop(t)
	p, err := policy.Parse("p.yaml", []byte("name: bold\notherwise: allow\nirreversible_in_transactions: allow\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.guard.opts.Policy = p
	s.add(t, "/api/v1/namespaces/shop/persistentvolumeclaims/d", `{"kind":"PersistentVolumeClaim","apiVersion":"v1"}`)
	s.must(t, "begin")
	if s.guard.Restrained() || !s.guard.InTransaction() {
		t.Error("the shell is held back")
	}
	if code, body := s.do(t, "DELETE", "/api/v1/namespaces/shop/persistentvolumeclaims/d", ""); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := s.do(t, "POST", pods+"/web/exec?command=rm", ""); code == 403 {
		t.Errorf("%d %s", code, body)
	}
	s.must(t, "abort", "not restored: the data of the volume may go with it")
	e := s.journal()[0]
	if e.Irreversible == "" || e.Transaction != 1 {
		t.Errorf("%+v", e)
	}
	s.guard.opts.Policy = nil
	if s.must(t, "begin"); !s.guard.Restrained() {
		t.Error("without a policy the shell is not held back")
	}
}

func TestBeginWithOpenStream(t *testing.T) {
	s := newShop(t)
	end, _ := s.guard.history.stream(&Entry{Irreversible: "x"}, false)
	s.refused(t, "begin", "1 connections into containers are open")
	end()
	s.must(t, "begin")
}

// scale says how bad the system is.
type scale struct {
	mu     sync.Mutex
	values []float64 // the last one lasts
	err    error
}

func (s *scale) Severity(context.Context) (float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.values[0]
	if len(s.values) > 1 {
		s.values = s.values[1:]
	}
	return v, s.err
}

func TestCommitOnlyIfNoWorse(t *testing.T) {
	tests := []struct {
		name     string
		severity *scale
		wait     int
		kept     bool
		says     string
	}{
		{"better", &scale{values: []float64{0.5, 0.2}}, 0, true, "with 1 writes: the system is no worse"},
		{"as bad", &scale{values: []float64{0.5, 0.5}}, 0, true, "is committed"},
		{"worse", &scale{values: []float64{0.5, 0.6}}, 0, false, "is aborted, not committed: the system is worse"},
		{"worse for a while", &scale{values: []float64{0.5, 0.9, 0.4}}, 20, true, "is committed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &setup{fake: newFake(t)}
			s.add(t, configMaps+"/x", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
			var events []Transaction
			s.startWith(t, Options{
				Upstream: &rest.Config{Host: s.URL, BearerToken: "lab"}, Severity: tt.severity,
				Transaction: func(e Transaction) { events = append(events, e) },
			})
			s.guard.settle = time.Millisecond
			want := s.state()
			if text := s.must(t, "begin"); strings.Contains(text, "0.5") {
				t.Errorf("the agent is told how bad it is: %s", text)
			}
			s.put(t, "x", "2")
			s.must(t, fmt.Sprintf("commit?wait=%d", tt.wait), tt.says)
			if kept := !cmp.Equal(want, s.state()); kept != tt.kept {
				t.Errorf("kept is %v", kept)
			}
			s.refused(t, "commit", "no transaction is open")
			if len(events) != 2 || events[1].Aborted == tt.kept || *events[1].Before != 0.5 || events[1].After == nil {
				t.Errorf("%+v", events)
			}
		})
	}
	t.Run("it cannot be measured", func(t *testing.T) {
		s := &setup{fake: newFake(t)}
		s.add(t, configMaps+"/x", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
		s.startWith(t, Options{
			Upstream: &rest.Config{Host: s.URL, BearerToken: "lab"},
			Severity: &scale{values: []float64{0}, err: errors.New("no users")},
		})
		s.must(t, "begin", "Severity could not be measured: no users")
	})
}

// TestBeginWhileItRecovers begins anew while the system still suffers from what was taken back: that is no excuse for
// as bad a change.
func TestBeginWhileItRecovers(t *testing.T) {
	h, bad, good, suffering := &history{}, 0.5, 0.1, 0.9
	if got := h.reference(&suffering); *got != suffering {
		t.Errorf("with nothing taken back: %v", *got)
	}
	h.suffer(&transaction{severity: &suffering}) // It had no writes.
	h.suffer(&transaction{used: 1})              // Nothing was measured.
	if got := h.reference(&suffering); *got != suffering || h.reference(nil) != nil {
		t.Errorf("with nothing to suffer from: %v", *got)
	}
	h.suffer(&transaction{severity: &bad, used: 1})
	if got := h.reference(&suffering); *got != bad {
		t.Errorf("while it recovers: %v", *got)
	}
	if got := h.reference(&good); *got != good {
		t.Errorf("when it is better: %v", *got)
	}
	h.suffers = time.Now().Add(-time.Second)
	if got := h.reference(&suffering); *got != suffering {
		t.Errorf("later: %v", *got)
	}
}

// TestLeave leaves a transaction open, as an agent does that submits or dies.
func TestLeave(t *testing.T) {
	s := newShop(t)
	want := s.state()
	if out, err := s.guard.Leave(t.Context()); out != nil || err != nil {
		t.Errorf("%v, %v", out, err)
	}
	s.must(t, "begin")
	s.put(t, "x", "2")
	s.create(t, "new", "1")
	if err := s.guard.Shut(); err != nil {
		t.Fatal(err)
	}
	out, err := s.guard.Leave(t.Context())
	if err != nil || !out.Left || !out.Aborted || len(out.Undone) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
}

// TestKilledClient kills a client in the middle of its write: the write is in the journal, and is taken back.
func TestKilledClient(t *testing.T) {
	s := newShop(t)
	s.add(t, configMaps+"/slow", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
	s.held, s.arrived = make(chan struct{}), make(chan struct{}, 10)
	want := s.state()
	s.must(t, "begin")
	ctx, kill := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = s.request(ctx, "PUT", configMaps+"/slow", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"2"}}`)
	}()
	<-s.arrived
	kill()
	<-gone
	close(s.held)
	s.must(t, "abort", "put back data.a")
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Error(diff)
	}
}

// TestUndoLeavesOthersAlone takes writes back after the lab has made an object its own, and after somebody over the
// network has written.
func TestUndoLeavesOthersAlone(t *testing.T) {
	s := newSetup(t, Rule{Labels: "hidden=yes"})
	s.create(t, "mine", "1")
	s.add(t, configMaps+"/mine", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"labels":{"hidden":"yes"}},"data":{"a":"lab"}}`)
	s.must(t, "undo?n=5", "it is gone already")
	if !s.has(configMaps + "/mine") {
		t.Error("what the guard hides was deleted")
	}
	credentials := []string{"Authorization", "Bearer pod", "Content-Type", jsonType}
	code, body := s.overNetwork("POST", configMaps, `{"kind":"ConfigMap","metadata":{"name":"theirs"}}`, credentials...)
	if code != 201 {
		t.Fatalf("%d %s", code, body)
	}
	s.refused(t, "undo", "there is no write")
	if code, body := s.overNetwork("POST", TransactionPath+"begin", "", credentials...); code == 200 {
		t.Errorf("a transaction of somebody else: %s", body)
	}
}

// TestHistoryIsBounded writes more and more.
func TestHistoryIsBounded(t *testing.T) {
	h := &history{}
	for range 3 * maxHistory {
		h.add(&write{Change: undo.Change{Objects: []undo.Object{{Before: make([]byte, 100)}}}})
	}
	if len(h.writes) != maxHistory || h.bytes != 100*maxHistory || h.forgotten != 2*maxHistory {
		t.Errorf("%d writes, %d bytes, %d forgotten", len(h.writes), h.bytes, h.forgotten)
	}
	for range 200 {
		h.add(&write{Change: undo.Change{Objects: []undo.Object{{Before: make([]byte, 1<<20)}}}})
	}
	if h.bytes > maxRemembered {
		t.Errorf("%d bytes", h.bytes)
	}
	h.open = &transaction{id: 1}
	for range Window {
		h.add(&write{transaction: 1, Change: undo.Change{Objects: []undo.Object{{Before: make([]byte, 1<<20)}}}})
	}
	if n := len(h.latest(100, 1)); n != Window {
		t.Errorf("%d writes of the transaction are remembered", n)
	}
	if err := h.take(&Entry{}, maxTransaction, false); err == nil {
		t.Error("a transaction can come to more than is remembered")
	}
	if text := h.text(); len(text) > 10_000 || !strings.Contains(text, "are forgotten") {
		t.Errorf("%s", text)
	}
}

// TestNothingIsPretendedInShadow has nothing to take back.
func TestShadowHasNoTransactions(t *testing.T) {
	s := &setup{fake: newFake(t)}
	s.startWith(t, Options{Upstream: &rest.Config{Host: s.URL, BearerToken: "lab"}, Shadow: true, Namespaces: []string{"shop"}})
	s.refused(t, "begin", "this is a shadow run")
	s.must(t, "history", "Nothing was written")
}

// TestRandomTransactions writes at random in transactions. After an abort all is as before; after a commit it is as it
// was written.
func TestRandomTransactions(t *testing.T) {
	s := newShop(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := s.state()
		s.must(t, "begin")
		for range rapid.IntRange(0, 25).Draw(rt, "writes") {
			name := rapid.SampledFrom([]string{"x", "y", "z", "new"}).Draw(rt, "name")
			value := fmt.Sprint(rapid.IntRange(1, 9).Draw(rt, "value"))
			switch rapid.SampledFrom([]string{"create", "put", "patch", "delete", "all", "undo", "begin"}).Draw(rt, "verb") {
			case "create":
				if !s.has(configMaps + "/" + name) {
					s.create(t, name, value)
				}
			case "put":
				s.put(t, name, value)
			case "patch":
				s.do(t, "PATCH", configMaps+"/"+name, `{"metadata":{"labels":{"l":"`+value+`"}}}`, "Content-Type", "application/merge-patch+json")
			case "delete":
				s.do(t, "DELETE", configMaps+"/"+name, "")
			case "all":
				s.do(t, "DELETE", configMaps, "")
			case "undo":
				s.lab(t, "undo?n="+value)
			case "begin":
				s.lab(t, "begin")
			}
		}
		after := s.state()
		want, end := before, "abort"
		if rapid.Bool().Draw(rt, "commit") {
			want, end = after, "commit"
		}
		if text := s.must(t, end); strings.Contains(text, "not restored") || strings.Contains(text, "differs") {
			rt.Fatalf("%s", text)
		}
		if diff := cmp.Diff(want, s.state()); diff != "" {
			rt.Fatalf("after %s: %s", end, diff)
		}
	})
}

func FuzzTransactionNumber(f *testing.F) {
	f.Add("1")
	f.Add("99999999999999999999999")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := number(s, 1); err == nil && (n < 0 || n > maxNumber) {
			t.Errorf("%q is %d", s, n)
		}
	})
}
