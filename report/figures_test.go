package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// wellFormed reads a document to its end.
func wellFormed(b []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestFigures(t *testing.T) {
	t.Chdir(t.TempDir())
	var files []string
	for _, a := range some {
		files = append(files, a.write(t))
	}
	r, _ := build(files)
	if err := r.WriteFigures("out/figures"); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"accuracy.svg": "localization", "steps.svg": "limit of steps", "actions.svg": ">react (gpt-4o)<", "actions-by-outcome.svg": "flash, failed",
	} {
		b, err := os.ReadFile(filepath.Join("out/figures", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := wellFormed(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(b), says) || !strings.Contains(string(b), "prefers-color-scheme: dark") || strings.Contains(string(b), "NaN") {
			t.Errorf("%s: %s", name, b)
		}
	}
	again, _ := build(files)
	if d := cmp.Diff(r.Figures(), again.Figures()); d != "" {
		t.Errorf("the same records give other figures:\n%s", d)
	}
	if r, _ := build(nil); len(r.Figures()) != 0 {
		t.Errorf("figures of nothing: %v", r.Figures())
	}
}

// Whatever the names and numbers, a figure is XML, and what it draws is within it.
func TestFiguresOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		for i := range rapid.IntRange(0, 30).Draw(t, "runs") {
			b.Add(&Run{
				Run:   record.Run{ID: fmt.Sprint(i), Agent: rapid.String().Draw(t, "agent")},
				Task:  rapid.SampledFrom(problem.Tasks).Draw(t, "task"),
				Class: rapid.SampledFrom([]session.Class{session.Solved, session.AgentFailed, session.Infra}).Draw(t, "class"),
				Steps: rapid.IntRange(0, 300).Draw(t, "steps"), Actions: rapid.SliceOf(rapid.String()).Draw(t, "actions"),
			})
		}
		for name, f := range b.Report().Figures() {
			if err := wellFormed(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if bytes.Contains(f, []byte("NaN")) || bytes.Contains(f, []byte("Inf")) || bytes.Contains(f, []byte(`="-`)) {
				t.Errorf("%s draws nowhere: %s", name, f)
			}
		}
	})
}
