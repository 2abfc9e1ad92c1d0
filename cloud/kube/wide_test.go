package kube

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

const tidb = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tidbclusters.pingcap.com}
spec: {group: pingcap.com, scope: Namespaced, names: {kind: TidbCluster, plural: tidbclusters}}
---
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {name: basic}
`

const definition = crds + "/tidbclusters.pingcap.com"

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// entitled is a server whose user has all rights.
func entitled(t *testing.T) (*apiServer, *Cloud) {
	t.Helper()
	s, c := newServer(t)
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		asks := strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews")
		if asks {
			var review authorizationv1.SelfSubjectAccessReview
			review.Status.Allowed = true
			reply(w, http.StatusCreated, review)
		}
		return asks
	}
	return s, c
}

// A definition of somebody else's is refused, and left as it is.
func TestForeignDefinition(t *testing.T) {
	s, c := entitled(t)
	s.add(t, crds, thing("tidbclusters.pingcap.com", ""))
	err := c.Clear(t.Context(), parse(t, tidb))
	const want = "customresourcedefinitions/tidbclusters.pingcap.com exists already: the lab did not make it"
	if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if len(s.writes) > 0 {
		t.Errorf("it writes: %v", s.writes)
	}
	if err := c.Clear(t.Context(), parse(t, shop)); err != nil {
		t.Errorf("an application that is in its namespace: %v", err)
	}
}

// What a run has that is alive is its own; what a dead one has left makes way, with all else that it has left.
func TestDefinitionOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := entitled(t)
		a := claim(t, c, "r1", "shop", "observe")
		s.add(t, crds, thing("tidbclusters.pingcap.com", "r1"), thing("other.example.com", ""))
		s.add(t, roles, thing("of-r1", "r1"))
		next := s.connect(t)
		err := next.Clear(t.Context(), parse(t, tidb))
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "run r1, since 2000-01-01 00:00:00 UTC") {
			t.Error(err)
		}
		a.die()
		time.Sleep(leaseTime)
		if err := next.Admits(t.Context(), parse(t, tidb)); err != nil || !s.has(definition) {
			t.Errorf("who only looks: %v", err)
		}
		if err := next.Clear(t.Context(), parse(t, tidb)); err != nil {
			t.Error(err)
		}
		if got := s.paths(); !slices.Equal(got, []string{crds + "/other.example.com"}) {
			t.Errorf("left: %v", got)
		}
		if err := next.Clear(t.Context(), parse(t, tidb)); err != nil {
			t.Errorf("where there is none: %v", err)
		}
	})
}

// A run that wakes up while it is cleared away keeps its definition.
func TestDefinitionRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := entitled(t)
		asleep := claim(t, c, "asleep", "shop")
		s.add(t, crds, thing("tidbclusters.pingcap.com", "asleep"))
		asleep.die()
		time.Sleep(leaseTime)
		entitles, woken := s.before, false
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete && !woken {
				woken = true
				asleep.renewOne(t.Context(), asleep.made[0])
			}
			return entitles(w, r)
		}
		if err := s.connect(t).Clear(t.Context(), parse(t, tidb)); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
		if !s.has(definition) || !s.has(spaces+"/shop") {
			t.Errorf("there is %v", s.paths())
		}
		s.before = nil
		if err := asleep.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Who is without a right is told which, and which application needs it.
func TestExamineWide(t *testing.T) {
	need := func(t *testing.T, names ...string) (n Need) {
		for _, name := range names {
			n.Apps = append(n.Apps, App{name, parse(t, map[string]string{"shop": shop, "tidb": tidb}[name])})
		}
		return n
	}
	for name, test := range map[string]struct {
		apps   []string
		change func(t *testing.T, p *place)
		want   string
	}{
		"all is well": {
			[]string{"shop", "tidb"},
			func(*testing.T, *place) {},
			"cluster-wide ok customresourcedefinitions/tidbclusters.pingcap.com of tidb can be made: ",
		},
		"no right": {
			[]string{"shop", "tidb"},
			func(_ *testing.T, p *place) { p.mayNot = []string{"create customresourcedefinitions"} },
			"cluster-wide warning tidb cannot be had: you may not create customresourcedefinitions: Ask for it if you want tidb.",
		},
		"no right to what it defines": {
			[]string{"shop", "tidb"},
			func(_ *testing.T, p *place) { p.mayNot = []string{"patch tidbclusters"} },
			"cluster-wide warning tidb cannot be had: you may not patch tidbclusters: ",
		},
		"no right, and nothing else wanted": {
			[]string{"tidb"},
			func(_ *testing.T, p *place) { p.mayNot = []string{"delete customresourcedefinitions"} },
			"cluster-wide problem tidb cannot be had: you may not delete customresourcedefinitions",
		},
		"the owner's": {
			[]string{"shop", "tidb"},
			func(t *testing.T, p *place) { p.server.add(t, crds, thing("tidbclusters.pingcap.com", "")) },
			"cluster-wide warning tidb cannot be had: customresourcedefinitions/tidbclusters.pingcap.com exists already: ",
		},
		"only in namespaces": {[]string{"shop"}, func(_ *testing.T, p *place) { p.mayNot = []string{"create customresourcedefinitions"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			test.change(t, p)
			var got []string
			for _, f := range p.cloud.Examine(t.Context(), need(t, test.apps...)) {
				if f.Check == "cluster-wide" {
					got = append(got, string(f.Check+" "+string(f.Level)+" "+f.Text+": "+f.Do))
				}
			}
			line := strings.Join(got, "\n")
			if !strings.HasPrefix(line, test.want) || test.want == "" && line != "" || len(got) > 1 {
				t.Errorf("got %q, want %q", line, test.want)
			}
		})
	}
}
