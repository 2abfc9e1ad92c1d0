package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/workload"
)

// TestDocBlocks reads what the documents show in other languages as those would.
func TestDocBlocks(t *testing.T) {
	python, _ := exec.LookPath("python3")
	for _, d := range readDocs(t) {
		for _, b := range d.blocks {
			var err error
			switch b.language {
			case "go":
				_, err = parser.ParseFile(token.NewFileSet(), "", b.text, parser.SkipObjectResolution)
			case "json":
				for dec := json.NewDecoder(strings.NewReader(b.text)); err == nil && dec.More(); {
					var v any
					err = dec.Decode(&v)
				}
			case "python":
				if python == "" {
					continue
				}
				cmd := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.stdin.read())")
				cmd.Stdin = strings.NewReader(b.text)
				err = cmd.Run()
			case "yaml":
				err = checkYAML(t, d.file, b.text)
			case "sh", "console", "bash", "text":
			default:
				err = fmt.Errorf("nobody reads blocks of %q", b.language)
			}
			if err != nil {
				t.Errorf("%s: %v", b.where, err)
			}
		}
	}
}

// checkYAML reads a document of ours: which one it is, the first field tells.
func checkYAML(t *testing.T, file, text string) error {
	t.Helper()
	switch first, _, _ := strings.Cut(text, ":"); {
	case first == "id":
		_, err := problemtest.Library(t).Parse("", []byte(text))
		return err
	case first == "load":
		for line := range strings.Lines(text) {
			document := "id: doc-{task}-1\ntitle: x\napp: hotel-reservation\ntasks: [detection]\n" + line
			if _, err := problemtest.Library(t).Parse("", []byte(document)); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
		return nil
	case strings.Contains(text, "\nfrontend:"):
		b, err := os.ReadFile("../../examples/shop/app.yaml")
		if err == nil && !strings.HasSuffix(string(b), text) { // A comment stands above it.
			err = errors.New("this is not examples/shop/app.yaml any more; copy it")
		}
		return err
	case first == "agent":
		name := filepath.Join(t.TempDir(), "campaign.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
		return readFlags(newBench(Process()), name)
	case file == "docs/policies.md":
		_, err := policy.Parse("", []byte(text))
		return err
	case first == "name":
		_, err := workload.ParseMix("", []byte(text))
		return err
	case file == "docs/models.md":
		name := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
		_, err := llm.Models().With(name)
		return err
	}
	return errors.New("nobody knows what this is")
}

var (
	docLinks   = regexp.MustCompile(`\]\(([^)]+)\)`)
	docHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor  = regexp.MustCompile(`[^a-z0-9 -]`)
)

// TestDocLinks follows the links of the documents within the repository, and to the headings in them.
func TestDocLinks(t *testing.T) {
	anchors := map[string]bool{}
	docs := readDocs(t)
	for _, d := range docs {
		for _, h := range docHeading.FindAllStringSubmatch(d.text, -1) {
			name := strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
			anchors[filepath.Base(d.file)+"#"+name] = true
		}
	}
	for _, d := range docs {
		for _, m := range docLinks.FindAllStringSubmatch(d.text, -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := filepath.Join("../..", filepath.Dir(d.file), file)
			if file == "" {
				target = d.file
			} else if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", d.file, err)
			}
			if anchor != "" && !anchors[filepath.Base(target)+"#"+anchor] {
				t.Errorf("%s: %s has no heading %s", d.file, file, anchor)
			}
		}
	}
}
