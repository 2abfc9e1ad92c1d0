package policy

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rooms are the packages of the module from the upper to the lower ones. A room is a directory with
// all below it; the longest match counts. A package may import its own room and lower ones.
var rooms = []string{
	"cmd",
	"internal/bench",
	"internal/dist",
	"examples",
	"test",
	"lab",
	"internal/cli",
	"internal/builtin",
	"internal/adopt",
	"server",
	"campaign",
	"report",
	"session",
	"agent",
	"llm",
	"aci",
	"guard",
	"grade",
	"problem",
	"world",
	"fault",
	"workload",
	"observe",
	"app",
	"cloud",
	"image",
	"shell",
	"record",
	"internal/kuberc",
	"internal/manifest",
	"internal/policy",
	"internal/strict",
	"internal/term",
	"internal/thought",
	"internal/token",
	"kit",
	"internal/english",
	"internal/logs",
	"internal/nesting",
	"internal/socketpair",
}

// TestRoomsAreDrawn holds the list of rooms in docs/architecture.md to the one above, and both to the directories.
func TestRoomsAreDrawn(t *testing.T) {
	doc, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z][a-z/]*)  +\S`).FindAllStringSubmatch(string(doc), -1) {
		drawn = append(drawn, m[1])
	}
	if diff := cmp.Diff(rooms, drawn); diff != "" {
		t.Errorf("docs/architecture.md has other rooms than rooms_test.go:\n%s", diff)
	}
	for _, r := range rooms {
		if fi, err := os.Stat(root + "/" + r); err != nil || !fi.IsDir() {
			t.Errorf("there is no directory %s: %v", r, err)
		}
	}
}

// TestDocsNamePlaces shows that the directories and files of the repository that the docs name are there.
func TestDocsNamePlaces(t *testing.T) {
	docs, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(docs) < 10 {
		t.Fatalf("%d docs, %v", len(docs), err)
	}
	more, err := filepath.Glob(root + "/docs/design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(append(docs, more...), root+"/README.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([a-z]+/[a-zA-Z0-9_./*-]*[a-zA-Z0-9*])/?`").FindAllStringSubmatch(string(text), -1) {
			if top, _, _ := strings.Cut(m[1], "/"); !isDir(root+"/"+top) || made[top] {
				continue // It is something else, or is made.
			}
			if found, err := filepath.Glob(root + "/" + m[1]); (err != nil || len(found) == 0) && !elsewhere[m[1]] {
				t.Errorf("%s names %s, which is not there", doc, m[1])
			}
		}
	}
}

// made are the directories that a build, a release or a run makes.
var made = map[string]bool{"bin": true, "dist": true, "results": true}

// elsewhere is what docs name that looks like a place of the repository and is none.
var elsewhere = map[string]bool{
	"fault/missing_image.go": true, // an example, to be written
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

// testRooms are the upper rooms that the tests of a room may import as well.
var testRooms = map[string][]string{
	// A cloud is tested with applications in it, with Jobs of many runs, and by what an agent sees of it.
	"cloud":             {"app", "campaign", "guard"},
	"image":             {"cloud"}, // An image is tested in a container, whose files and network are the embedded cloud's.
	"shell":             {"cloud"},
	"kit":               {"cloud"},
	"internal/manifest": {"cloud"}, // Objects are applied to a cloud in memory.
	"internal/cli":      {"test"},  // It links the lab that test/hostile attacks.
}

// listers are the rooms that may import an image or an application by name; the others are given them.
var listers = []string{"cmd", "internal/bench", "examples", "test", "internal/builtin"}

// one reports whether a package is an image or an application, one of many.
func one(pkg string) bool {
	if dir, ok := strings.CutPrefix(pkg, "app/"); ok {
		return !slices.Contains([]string{"ask", "service", "apptest"}, dir)
	}
	return within(pkg, "image") && !slices.Contains([]string{"image/inside", "image/oci"}, pkg)
}

// support reports whether a package exists for tests: it counts as a test of its room, and only tests import it.
func support(pkg string) bool { return strings.HasSuffix(path.Base(pkg), "test") }

// linkers are the rooms that may link the control plane; whoever does pays tens of seconds for each
// link. Anybody's integration tests may.
var linkers = []string{
	"cmd/aiopslab", "examples", "lab", "test/conformance/lab", "test/labtest", "internal/cli", "internal/bench", "cloud/embedded",
}

// light are the packages below cloud/embedded that must do without it.
var light = []string{
	"cloud/embedded/chance", "cloud/embedded/cri", "cloud/embedded/kubeproxy", "cloud/embedded/loopback",
	"cloud/embedded/netpolicy", "cloud/embedded/provisioner", "cloud/embedded/vfs", "cloud/embedded/vnet",
}

// controlPlane are the packages that make a binary a control plane.
var controlPlane = []string{
	"go.etcd.io/etcd/server", "k8s.io/kubernetes/cmd", "k8s.io/kubernetes/pkg/controlplane",
}

// room returns the room a package is in.
func room(pkg string) (string, bool) {
	best := ""
	for _, r := range rooms {
		if within(pkg, r) && len(r) > len(best) {
			best = r
		}
	}
	return best, best != ""
}

// within reports whether a package is dir or below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func withinAny(pkg string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(pkg, dir) })
}

// mayImport judges an import of one package of the module by another.
func mayImport(from, to string, test bool) bool {
	a, _ := room(from)
	b, _ := room(to)
	test = test || support(from)
	switch {
	case test && slices.Contains(testRooms[a], b):
		return true
	case !test && (support(to) || one(to) && !one(from) && !slices.Contains(listers, a)):
		return false
	}
	return slices.Index(rooms, a) <= slices.Index(rooms, b)
}

func TestImportsPointDownwards(t *testing.T) {
	for _, p := range packages(t).own {
		if _, ok := room(p.name); !ok {
			t.Errorf("%s is in no room: add its directory to rooms, or put it where it belongs", p.name)
			continue
		}
		check := func(imports []string, test bool) {
			for _, i := range imports {
				to, ok := strings.CutPrefix(i, module+"/")
				if _, known := room(to); ok && known && !mayImport(p.name, to, test) {
					t.Errorf("%s must not import %s, which is in an upper room, for tests alone, or one of many that somebody else lists", p.name, to)
				}
			}
		}
		check(p.Imports, false)
		check(p.TestImports, true)
		check(p.XTestImports, true)
	}
}

func TestMayImport(t *testing.T) {
	tests := []struct {
		from, to string
		test, ok bool
	}{
		{"internal/cli", "cloud/embedded", false, true},
		{"cloud/embedded", "internal/cli", false, false},
		{"cloud/embedded", "image/nginx", false, false},
		{"cloud/embedded", "image/nginx", true, true},
		{"kit", "kit/kittest", false, false},
		{"kit/kittest", "cloud/embedded/vfs", false, true},
		{"image/nginx", "kit", false, true},
		{"record", "session", true, false},
		{"problem", "app/hotel", false, false},
		{"problem", "app/hotel", true, true},
		{"app/hotel", "app/hotel/hotelpb", false, true},
		{"internal/builtin", "app/hotel", false, true},
		{"internal/cli", "image/nginx", false, false},
		{"internal/cli", "image/oci", false, true},
		{"session", "problem/problemtest", false, false},
		{"session", "record", false, true},
	}
	for _, tt := range tests {
		if got := mayImport(tt.from, tt.to, tt.test); got != tt.ok {
			t.Errorf("%s importing %s (test: %v): %v", tt.from, tt.to, tt.test, got)
		}
	}
}

func TestWhoLinksTheControlPlane(t *testing.T) {
	graph := packages(t)
	for _, p := range graph.own {
		if withinAny(p.name, linkers) && !withinAny(p.name, light) {
			continue
		}
		if path := graph.path(p.ImportPath, controlPlane); path != nil {
			t.Errorf("%s links the control plane: %s", p.name, strings.Join(path, " > "))
		}
	}
}

// TestContainersHaveNoAnswers shows that what runs in real containers, where an agent can read it, has no problems.
func TestContainersHaveNoAnswers(t *testing.T) {
	answers := []string{module + "/problem", module + "/fault", module + "/grade", module + "/agent"}
	if path := packages(t).path(module+"/cmd/labapp", answers); path != nil {
		t.Errorf("labapp links %s", strings.Join(path, " > "))
	}
}

func TestPackagesHaveDocs(t *testing.T) {
	for _, p := range packages(t).own {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment: say what it is, for whom, and what always holds", p.name)
		}
	}
}
