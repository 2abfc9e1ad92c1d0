package problem_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// The example is a library: an application, its mix and problems over it.
func TestWith(t *testing.T) {
	l, err := problemtest.Library(t).With("../examples/shop", "../examples/shop/problems")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Find("prices_gone_corner_shop-mitigation-1")
	if err != nil || p.App.Name != "corner-shop" || p.BuiltIn() {
		t.Fatalf("got %+v, %v", p, err)
	}
	if fix, err := p.Solution(); err != nil || len(fix) == 0 {
		t.Errorf("the solution is %q, %v", fix, err)
	}
	if _, err := os.Stat(p.Document.File); err != nil {
		t.Error(err)
	}
	own, err := l.Suite("own")
	if err != nil || len(own) != 14 || len(l.Problems) != len(problemtest.Library(t).Problems)+14 {
		t.Errorf("%d problems are own, %d all, %v", len(own), len(l.Problems), err)
	}
	if _, err := problemtest.Library(t).Find(p.ID); err == nil {
		t.Error("what is one's own is built in")
	}
}

func TestWithErrors(t *testing.T) {
	write := func(doc string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if dir := write(strings.Replace(good, "social-network", "corner-shp", 1)); true {
		_, err := problemtest.Library(t).With("../examples/shop", dir)
		want := dir + `/mine.yaml:3: app: there is no application "corner-shp"; did you mean "corner-shop"?`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	taken := write(strings.Replace(good, "id: scale-", "id: scale_pod_zero_social_net-", 1))
	if _, err := problemtest.Library(t).With("", taken); err == nil || !strings.Contains(err.Error(), "mine.yaml: id: scale_pod_zero_social_net-detection-1 is a built-in problem") {
		t.Errorf("got %v", err)
	}
	twice := write(good)
	if err := os.WriteFile(filepath.Join(twice, "two.yml"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := problemtest.Library(t).With("", twice); err == nil || !strings.Contains(err.Error(), "two.yml: problem scale-detection-1 is in mine.yaml already") {
		t.Errorf("got %v", err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, err := problemtest.Library(t).With("", dir); err == nil {
			t.Error("a directory without problems")
		}
		if _, err := problemtest.Library(t).With(dir, ""); err == nil {
			t.Error("a directory without applications")
		}
	}
}
