package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// What the environment makes of the name of a problem is the problem, of one's own application too, even
// if the files that it was read from are gone.
func TestProblemName(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/shop")); err != nil {
		t.Fatal(err)
	}
	l, err := problemtest.Library(t).With(dir, filepath.Join(dir, "problems"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"prices_gone_corner_shop-mitigation-1", "catalog_port_corner_shop-detection-1-healthy", "revoke_auth_mongodb-analysis-1"} {
		p, err := l.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := json.Marshal(nameOf(p))
		if err != nil {
			t.Fatal(err)
		}
		var n problemName
		if err := json.Unmarshal(wire, &n); err != nil {
			t.Fatal(err)
		}
		q, err := n.find(problemtest.Library(t))
		if err != nil || q.ID != id || q.App.Name != p.App.Name || len(q.App.Services) != len(p.App.Services) || q.Healthy != p.Healthy {
			t.Errorf("%s: %+v, %v", id, q, err)
		}
	}
	if _, err := (problemName{ID: "x", Document: []byte("id: x"), App: []byte("no archive")}).find(problemtest.Library(t)); err == nil {
		t.Error("anything is an application")
	}
}
