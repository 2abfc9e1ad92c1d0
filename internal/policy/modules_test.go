package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// version is a release or a pseudo-version: what is built is what was published. A registry that generates code numbers
// what it has made of one commit.
var version = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(\w+\.)*(0\.)?\d{14}-[0-9a-f]{12}(\.\d+)?)?(\+incompatible)?$`)

// absent is where modules are declared that dependencies import and that are not linked.
const absent = "./internal/absent/"

// variants are releases that are named after what they leave out.
var variants = map[string]string{
	"github.com/antithesishq/antithesis-sdk-go": "v0.7.2-default-no-op", // nats-server asks for it: assertions that do nothing.
}

func TestDependenciesArePinned(t *testing.T) {
	out, err := goCommand("mod", "edit", "-json")
	if err != nil {
		t.Fatal(err)
	}
	type mod struct{ Path, Version string }
	var file struct {
		Require []mod
		Replace []struct{ Old, New mod }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		t.Fatal(err)
	}
	replaced := map[string]bool{}
	for _, r := range file.Replace {
		replaced[r.Old.Path] = true
		switch {
		case strings.HasPrefix(r.New.Path, absent): // Nothing of it is built.
		case r.New.Version == "":
			t.Errorf("%s is replaced by a directory, %s", r.Old.Path, r.New.Path)
		case r.New.Path != r.Old.Path:
			t.Errorf("%s is replaced by a fork, %s", r.Old.Path, r.New.Path)
		case !version.MatchString(r.New.Version):
			t.Errorf("%s is replaced by %s, which is no release", r.Old.Path, r.New.Version)
		}
	}
	for _, r := range file.Require {
		if !replaced[r.Path] && r.Version != variants[r.Path] && !version.MatchString(r.Version) {
			t.Errorf("%s is required at %s, which is no release", r.Path, r.Version)
		}
	}
}

func TestVersion(t *testing.T) {
	for v, ok := range map[string]bool{
		"v1.2.3":                                 true,
		"v2.0.0+incompatible":                    true,
		"v0.0.0-20250403215159-8d39553ac7cf":     true,
		"v1.2.4-0.20250403215159-8d39553ac7cf":   true,
		"v1.36.11-20260217192757-1388a552fc3c.1": true,
		"v1.0.0-rc.1":                            false,
		"master":                                 false,
		"v1.2":                                   false,
		"v1.0.0-rc.1.0.20250403215159-8d39553a":  false,
	} {
		if version.MatchString(v) != ok {
			t.Errorf("%s: %v", v, !ok)
		}
	}
}

// licences are phrases of the licences under which code may be linked. The Mozilla licence binds
// only changes to the licensed files themselves, and we make none.
var licences = []string{
	"Apache License",
	"Permission is hereby granted, free of charge",      // MIT
	"Redistribution and use in source and binary forms", // BSD
	"Permission to use, copy, modify, and",              // ISC
	"Mozilla Public License",
}

// generated are modules that a registry makes of the schemas of another one. They have no licence of their own, but
// that one's.
var generated = map[string]string{
	"buf.build/gen/go/open-feature/flagd/grpc/go":            "github.com/open-feature/flagd-schemas",
	"buf.build/gen/go/open-feature/flagd/protocolbuffers/go": "github.com/open-feature/flagd-schemas",
}

func TestLicences(t *testing.T) {
	checked := map[string]bool{}
	dirs := map[string]string{}
	for _, p := range packages(t).all {
		if p.Module != nil {
			dirs[p.Module.Path] = p.Module.Dir
		}
	}
	for _, p := range packages(t).all {
		m := p.Module
		if m == nil || m.Main || checked[m.Path] || m.Replace != nil && strings.HasPrefix(m.Replace.Path, absent) {
			continue
		}
		checked[m.Path] = true
		if m.Dir == "" {
			continue // It is not in the module cache.
		}
		dir := m.Dir
		if source := generated[m.Path]; source != "" {
			dir = dirs[source]
		}
		if !permissive(dir) {
			t.Errorf("%s: no licence in %s is known to be permissive", m.Path, dir)
		}
	}
}

// permissive reports whether a directory has a licence that is one of the known ones.
func permissive(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, d := range entries {
		name := strings.ToLower(d.Name())
		if !strings.HasPrefix(name, "licen") && !strings.HasPrefix(name, "copying") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, d.Name()))
		if err != nil {
			continue
		}
		for _, phrase := range licences {
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(phrase)) { // Some write PERMISSION.
				return true
			}
		}
	}
	return false
}
