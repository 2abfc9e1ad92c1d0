package oci

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCtr makes a program ctr the only one in PATH.
func fakeCtr(t *testing.T, script string) (dir string) {
	t.Helper()
	sh, err := os.Stat("/bin/sh")
	if err != nil || sh.IsDir() {
		t.Skip("there is no shell")
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ctr"), []byte("#!/bin/sh\nPATH=/bin:/usr/bin\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestImport(t *testing.T) {
	dir := fakeCtr(t, `cat >"$(dirname "$0")/in"; echo "$@" >"$(dirname "$0")/args"`)
	socket := writeFile(t, nil)
	s := build(t, fakeBinary(t, elf.EM_X86_64))
	if err := s.Import(t.Context(), socket, "k8s.io"); err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	if err != nil || !bytes.Equal(in, archiveOf(t, s)) {
		t.Errorf("%d bytes were imported, %v", len(in), err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if want := "-a " + socket + " -n k8s.io images import -\n"; err != nil || string(args) != want {
		t.Errorf("ctr %s, %v", args, err)
	}
}

func TestImportFails(t *testing.T) {
	s := build(t, fakeBinary(t, elf.EM_X86_64))
	t.Run("ctr fails before it has read", func(t *testing.T) {
		fakeCtr(t, "echo progress; echo ctr: permission denied >&2; exit 1")
		err := s.Import(t.Context(), writeFile(t, nil), "k8s.io")
		if err == nil || !strings.Contains(err.Error(), "exit status 1: ctr: permission denied") {
			t.Error(err)
		}
	})
	t.Run("no containerd", func(t *testing.T) {
		fakeCtr(t, "")
		err := s.Import(t.Context(), "/nosuch.sock", "k8s.io")
		if err == nil || !strings.Contains(err.Error(), "no containerd at /nosuch.sock") {
			t.Error(err)
		}
	})
	t.Run("no ctr", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		err := s.Import(t.Context(), writeFile(t, nil), "k8s.io")
		if err == nil || !strings.Contains(err.Error(), "ctr is not in PATH") {
			t.Error(err)
		}
	})
}
