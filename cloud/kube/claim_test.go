package kube

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/aiopslab/aiopslab/cloud"
)

const (
	spaces = "/api/v1/namespaces"
	roles  = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	hooks  = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	crds   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	pvs    = "/api/v1/persistentvolumes"
)

// thing is an object with a label of a run, or with none.
func thing(name, run string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	if run != "" {
		m.Labels = map[string]string{RunLabel: run}
	}
	return m
}

// claim makes a claim that must succeed.
func claim(t *testing.T, c *Cloud, run string, names ...string) *Claim {
	t.Helper()
	got, err := c.Claim(t.Context(), run, names...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// die has the run of a claim end without a word.
func (c *Claim) die() {
	c.stop()
	<-c.done
}

func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		s.add(t, spaces, thing("default", ""), thing("other", ""))
		s.add(t, roles, thing("admin", ""), thing("of-another", "r2"))
		a := claim(t, c, "r1", "shop", "observe", "shop")
		if diff := cmp.Diff(cloud.Tenancy{
			Run: "r1", Namespaces: []string{"observe", "shop"}, Labels: map[string]string{"aiopslab.io/run": "r1"},
		}, a.Tenancy()); diff != "" {
			t.Errorf("what is the run's (-want +got):\n%s", diff)
		}
		// No pod of an agent's has a way to its node, and kubectl run is not refused.
		for label, want := range map[string]string{"enforce": "baseline", "warn": "restricted"} {
			if got := s.objects[spaces+"/shop"].GetLabels()["pod-security.kubernetes.io/"+label]; got != want {
				t.Errorf("Pod Security %s: %q", label, got)
			}
		}
		s.add(t, roles, thing("lab-r1", "r1"))
		s.add(t, crds, thing("things.lab", "r1"))
		s.add(t, pvs, thing("pv-r1", "r1"), thing("pv-of-users", ""))
		s.lingering[spaces+"/shop"] = 7 // Its pods have their grace period.
		time.Sleep(10 * time.Minute)    // It stays alive.
		if _, err := s.connect(t).Claim(t.Context(), "r2", "shop"); !errors.Is(err, ErrInUse) ||
			!strings.Contains(err.Error(), "run r1, since 2000-01-01 00:00:00 UTC") {
			t.Errorf("a second run: %v", err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Errorf("once more: %v", err)
		}
		want := []string{spaces + "/default", spaces + "/other", pvs + "/pv-of-users", roles + "/admin", roles + "/of-another"}
		if diff := cmp.Diff(want, s.paths()); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	})
}

// Where there is Chaos Mesh, a run has a namespace for what that is to do. It is nobody's to use, and goes with the run,
// also if that is killed.
func TestQuarters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		c.mesh.resources = []string{networkChaos, meshSecond}
		a := claim(t, c, "r1", "shop")
		if !s.has(spaces + "/aiopslab-r1") {
			t.Errorf("there is %v", s.paths())
		}
		if got := a.Tenancy().Namespaces; !slices.Equal(got, []string{"shop"}) {
			t.Errorf("what is the run's: %v", got)
		}
		if err := a.Close(t.Context()); err != nil || len(s.paths()) > 0 {
			t.Errorf("%v: %v", err, s.paths())
		}
		claim(t, c, "Run_2", "shop").die()
		time.Sleep(2 * leaseTime)
		removed, err := s.connect(t).Cleanup(t.Context())
		if err != nil || !slices.Contains(removed, "namespaces/"+quarters("Run_2")) || len(s.paths()) > 0 {
			t.Errorf("%v: removed %v, left %v", err, removed, s.paths())
		}
	})
	for _, run := range []string{"r1", "Run_2", strings.Repeat("x", 63), "x."} {
		if name := quarters(run); len(validation.IsDNS1123Label(name)) > 0 || !strings.HasPrefix(name, "aiopslab-") {
			t.Errorf("of %s: %q", run, name)
		}
	}
}

// A namespace that the lab has not made is never written to, whatever it looks like.
func TestNotOurs(t *testing.T) {
	copied := thing("copied", "r1")
	copied.Annotations = map[string]string{ownerAnnotation: owner{Namespace: "shop", Until: time.Now()}.annotation()}
	garbled := thing("garbled", "r1")
	garbled.Annotations = map[string]string{ownerAnnotation: "{"}
	unlabelled := thing("unlabelled", "")
	unlabelled.Annotations = map[string]string{ownerAnnotation: owner{Namespace: "unlabelled", Until: time.Now()}.annotation()}
	for _, ns := range []*metav1.PartialObjectMetadata{
		thing("foreign", ""), thing("labelled", "r1"), copied, garbled, unlabelled,
	} {
		s, c := newServer(t)
		s.add(t, spaces, ns)
		before := s.objects[spaces+"/"+ns.Name]
		_, err := c.Claim(t.Context(), "r1", "a", ns.Name, "z")
		if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "kubectl delete namespace "+ns.Name) {
			t.Errorf("%s: %v", ns.Name, err)
		}
		if removed, err := c.Cleanup(t.Context()); err != nil || len(removed) > 0 {
			t.Errorf("cleaned up: %v, %v", removed, err)
		}
		if got := s.paths(); !slices.Equal(got, []string{spaces + "/" + ns.Name}) {
			t.Errorf("%s: there is %v", ns.Name, got)
		}
		if diff := cmp.Diff(before, s.objects[spaces+"/"+ns.Name]); diff != "" {
			t.Errorf("%s was changed:\n%s", ns.Name, diff)
		}
	}
}

// A run that has died is cleared by the next, with all that it has left.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		dead := claim(t, c, "dead", "shop", "observe")
		s.add(t, hooks, thing("hook", "dead"))
		s.add(t, roles, thing("role", "dead"))
		dead.die()
		if _, err := c.Claim(t.Context(), "next", "shop"); !errors.Is(err, ErrInUse) {
			t.Errorf("just after its death: %v", err)
		}
		time.Sleep(leaseTime)
		s.lingering[spaces+"/shop"] = 3
		next := claim(t, c, "next", "shop")
		if got := s.paths(); !slices.Equal(got, []string{spaces + "/shop"}) {
			t.Errorf("there is %v", got)
		}
		i := slices.Index(s.writes, "DELETE "+hooks+"/hook")
		if j := slices.Index(s.writes, "DELETE "+roles+"/role"); i < 0 || j < i {
			t.Errorf("what may hold up a namespace does not go first: %v", s.writes)
		}
		// What the dead one still does, if it was only asleep, harms nobody.
		if err := dead.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if run, _, _ := ownerOf(&metav1.ObjectMeta{
			Name: "shop", Labels: s.objects[spaces+"/shop"].GetLabels(),
			Annotations: s.objects[spaces+"/shop"].GetAnnotations(),
		}); run != "next" {
			t.Errorf("shop is of run %q", run)
		}
		if err := next.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run that was asleep and wakes up while another is about to take over keeps its namespaces.
func TestRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		asleep := claim(t, c, "asleep", "shop")
		defer func() { _ = asleep.Close(t.Context()) }()
		s.add(t, hooks, thing("hook", "asleep"))
		asleep.die()
		time.Sleep(leaseTime)
		var once sync.Once
		s.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete {
				once.Do(func() { asleep.renewOne(context.Background(), asleep.made[0]) })
			}
			return false
		}
		if _, err := s.connect(t).Claim(t.Context(), "next", "shop"); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
		if !s.has(spaces+"/shop") || !s.has(hooks+"/hook") {
			t.Errorf("there is %v", s.paths())
		}
	})
}

// Of many that claim the same at once, over one that is dead, one wins.
func TestRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		claim(t, c, "dead", "shop").die()
		time.Sleep(leaseTime)
		s.lingering[spaces+"/shop"] = 20
		var won []*Claim
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, run := range []string{"a", "b", "c", "d", "e"} {
			c := s.connect(t)
			wg.Go(func() {
				got, err := c.Claim(t.Context(), run, "shop", "b-"+run)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, got)
				case !errors.Is(err, ErrInUse):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d have won", len(won))
		}
		want := []string{spaces + "/b-" + won[0].run, spaces + "/shop"}
		if diff := cmp.Diff(want, s.paths()); diff != "" {
			t.Errorf("what there is (-want +got):\n%s", diff)
		}
		if err := won[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A namespace that somebody has removed and made anew during the run is not the run's.
func TestReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		a := claim(t, c, "r1", "shop")
		s.mu.Lock()
		delete(s.objects, spaces+"/shop")
		s.mu.Unlock()
		s.add(t, spaces, thing("shop", ""))
		time.Sleep(5 * renewTime)
		if got := s.objects[spaces+"/shop"].GetLabels(); len(got) > 0 {
			t.Errorf("it was given labels: %v", got)
		}
		if err := a.Close(t.Context()); err != nil || !s.has(spaces+"/shop") {
			t.Errorf("%v; there is %v", err, s.paths())
		}
	})
}

func TestClaimErrors(t *testing.T) {
	s, c := newServer(t)
	for _, run := range []string{"", "a b", strings.Repeat("x", 64), "a=b,c"} {
		if _, err := c.Claim(t.Context(), run, "shop"); err == nil {
			t.Errorf("a run %q", run)
		}
	}
	if _, err := c.Claim(t.Context(), "r1"); err == nil {
		t.Error("a claim of nothing")
	}
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		return r.Method == http.MethodPost
	}
	if _, err := c.Claim(t.Context(), "r1", "shop"); err == nil || !strings.Contains(err.Error(), "aiopslab doctor") {
		t.Error(err)
	}
	if len(s.paths()) > 0 {
		t.Errorf("there is %v", s.paths())
	}
}

func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newServer(t)
		claim(t, c, "dead", "shop", "observe").die()
		s.add(t, spaces, thing("labelled", "dead"))
		s.add(t, roles, thing("dead", "dead"), thing("orphan", "long-gone"), thing("admin", ""), thing("alive", "alive"))
		s.add(t, pvs, thing("users", ""))
		time.Sleep(leaseTime)
		alive := claim(t, c, "alive", "store")
		remains, err := c.Remains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range remains {
			state := "dead"
			if r.Alive {
				state = "alive"
			}
			got = append(got, r.Run+" "+state+" "+strings.Join(r.Objects, " "))
		}
		want := []string{
			"alive alive namespaces/store clusterroles/alive",
			"dead dead namespaces/observe namespaces/shop clusterroles/dead",
			"long-gone dead clusterroles/orphan",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what remains (-want +got):\n%s", diff)
		}
		removed, err := c.Cleanup(t.Context())
		want = []string{"namespaces/observe", "namespaces/shop", "clusterroles/dead", "clusterroles/orphan"}
		if diff := cmp.Diff(want, removed); diff != "" || err != nil {
			t.Errorf("%v; removed (-want +got):\n%s", err, diff)
		}
		want = []string{spaces + "/labelled", spaces + "/store", pvs + "/users", roles + "/admin", roles + "/alive"}
		if diff := cmp.Diff(want, s.paths()); diff != "" {
			t.Errorf("what there is (-want +got):\n%s", diff)
		}
		if err := alive.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The time is the cluster's: a run on a machine whose clock is wrong is neither dead too early nor for ever alive.
func TestClock(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s, c := newServer(t)
			s.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Date", time.Now().Add(-wrong).UTC().Format(http.TimeFormat))
				return false
			}
			if _, err := c.Remains(t.Context()); err != nil { // As Open asks for the version.
				t.Fatal(err)
			}
			a := claim(t, c, "r1", "shop")
			_, o, _ := ownerOf(&metav1.ObjectMeta{
				Name: "shop", Labels: s.objects[spaces+"/shop"].GetLabels(),
				Annotations: s.objects[spaces+"/shop"].GetAnnotations(),
			})
			if got := o.Until.Sub(time.Now().Add(-wrong)); got != leaseTime {
				t.Errorf("%v: alive for %v", wrong, got)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
