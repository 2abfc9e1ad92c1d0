package policy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outside is the module that users copy to add to the lab.
const outside = root + "/examples/outside"

// TestOutsideReplaces holds the template to the replacements that the product is built with: without them a module of
// somebody else's would be built from other versions, or not at all.
func TestOutsideReplaces(t *testing.T) {
	ours, theirs := replacements(t, root), replacements(t, outside)
	if theirs[module] != "../.." {
		t.Errorf("examples/outside/go.mod replaces %s by %q, want ../..", module, theirs[module])
	}
	delete(theirs, module)
	for path, to := range ours {
		if strings.HasPrefix(to, "./") {
			to = "../../" + strings.TrimPrefix(to, "./")
		}
		if theirs[path] != to {
			t.Errorf("examples/outside/go.mod replaces %s by %q, want %q", path, theirs[path], to)
		}
		delete(theirs, path)
	}
	if len(theirs) > 0 {
		t.Errorf("examples/outside/go.mod replaces what go.mod does not: %v", theirs)
	}
}

// replacements are what a module's go.mod replaces, by path.
func replacements(t *testing.T, dir string) map[string]string {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := goCommand("-C", dir, "mod", "edit", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, r := range file.Replace {
		list[r.Old.Path] = strings.TrimSpace(r.New.Path + " " + r.New.Version)
	}
	return list
}

// TestOutside copies the template to another place, as its README tells, builds it and asks it for what it has.
func TestOutside(t *testing.T) {
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(outside)); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(dir + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.ReplaceAll(string(mod), "=> ../..", "=> "+clone)
	if err := os.WriteFile(dir+"/go.mod", []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := goCommand("-C", dir, "build", "-ldflags=-s -w", "-o", "mylab", "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for command, want := range map[string]string{
		"apps": "\nnotes ", "images": "\nexample/notes ", "faults": "\nwrong_store ", "agents": "keeper ",
		"describe wrong_store_notes-mitigation-1": "kubectl set env deployment/notes STORE=store:6379",
	} {
		out, err := exec.Command(dir+"/mylab", strings.Fields(command)...).Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("mylab %s: %v\n%s", command, err, out)
		}
	}
}
