package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var docsAll = flag.Bool("docs", false, "run all commands of the documents, not only those that take seconds")

const (
	docPatience = 30 * time.Minute // for a command
	docAddress  = "http://127.0.0.1:1818"
)

// TestDocCommands reads every command of every document as its program would, and runs it: the quick
// ones, or all of them with -docs. They run one after the other in one directory, as somebody types them who reads
// from top to bottom.
func TestDocCommands(t *testing.T) {
	docs := readDocs(t)
	dir := docScratch(t, docs)
	t.Chdir(dir)
	for i := range docs {
		d := &docs[i]
		t.Run(d.file, func(t *testing.T) {
			r := &docRunner{t: t, doc: d, dir: dir}
			defer r.end()
			for _, c := range d.commands {
				if err := checkCommand(c.text, c.inline); err != nil {
					t.Errorf("%s: %s: %v", c.where, c.text, err)
				} else if !c.inline {
					r.run(&c)
				}
			}
		})
	}
	for _, rule := range docRules {
		if !rule.used(docs) {
			t.Errorf("there is no command any more for the rule %s", rule.command)
		}
	}
}

// docScratch makes the directory in which a reader of the documents would be: the repository with what
// they tell to write.
func docScratch(t *testing.T, docs []docText) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs") // Not t.TempDir: the name of a socket cannot be long.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := exec.LookPath("aiopslab")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"bin/aiopslab": lab, "apps": root + "/examples/shop", "problems": root + "/examples/shop/problems"} {
		docLink(t, target, filepath.Join(dir, name))
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "bin" && name != "results" && name[0] != '.' {
			docLink(t, filepath.Join(root, name), filepath.Join(dir, name))
		}
	}
	records, err := txtar.ParseFile("testdata/script/report.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"mine.yaml": docMine(t, docs), "token": "sesame\n", ".curlrc": "fail-with-body\n",
		"my-test.sh": "#!/bin/sh\nkubectl get nodes\n", "test.sh": "#!/bin/sh\nkubectl get nodes\n",
	}
	for _, f := range records.Files {
		if f.Name == "results/1.jsonl" {
			for _, name := range []string{"results/1.jsonl", "results/paper/1.jsonl", "a/1.jsonl", "b/1.jsonl", "more/1.jsonl", "one.jsonl"} {
				files[name] = string(f.Data)
			}
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func docLink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// docMine is the problem that docs/problems.md tells to write.
func docMine(t *testing.T, docs []docText) string {
	t.Helper()
	for _, d := range docs {
		for _, b := range d.blocks {
			if d.file == "docs/problems.md" && b.language == "yaml" {
				return b.text
			}
		}
	}
	t.Fatal("docs/problems.md has no problem")
	return ""
}

// docRunner runs the commands of a document.
type docRunner struct {
	t   *testing.T
	doc *docText
	dir string

	exports    []string  // commands that hold for all after them
	id         string    // of the session that was begun last, for $ID
	background *exec.Cmd // what runs until it is stopped
	printed    *docOutput
	absent     bool // the last that would run until it is stopped was not started
}

// plain is a command without what explains it.
func (c *docCommand) plain() string {
	line, _, _ := strings.Cut(c.text, " # ")
	return strings.TrimSpace(line)
}

// needsServer are commands for what the document has started before them.
var needsServer = regexp.MustCompile(`^(aiopslab )?(kubectl|snapshot|reset) |^curl `)

func (r *docRunner) run(c *docCommand) {
	rule := docRuleOf(r.doc, c)
	cheap := rule.always
	if needsServer.MatchString(c.text) {
		cheap = r.background != nil && !r.absent
	}
	switch {
	case rule.never != "":
	case strings.HasPrefix(c.text, "export "):
		r.exports = append(r.exports, c.text)
	case !cheap && !*docsAll:
		r.absent = r.absent || rule.until != ""
	case rule.until != "":
		r.start(c, rule.until)
	default:
		r.finish(c, rule)
	}
}

func (r *docRunner) command(ctx context.Context, c *docCommand, with string) *exec.Cmd {
	script := strings.Join(append(r.exports, with+" "+c.text), "\n")
	if with == "" {
		script = strings.Join(append(r.exports, c.text), "\n")
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Env = append(append(os.Environ(), goCaches(r.t)...), "AIOPSLAB_TMPDIR="+r.dir, "AIOPSLAB_BIN=aiopslab", "HOME="+r.dir, "KUBECACHEDIR="+r.dir+"/cache", "KUBECONFIG=",
		"PYTHONDONTWRITEBYTECODE=1", "LAB="+docAddress, "ID="+r.id)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// goCaches are Go's settings that depend on the home directory. The commands of documents have one of their own, and
// would compile Kubernetes again in a cache of their own.
func goCaches(t *testing.T) (env []string) {
	t.Helper()
	names := []string{"GOENV", "GOCACHE", "GOMODCACHE"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env
}

// unready are commands that somebody who types would come to when pods are ready.
var unready = regexp.MustCompile(`^(aiopslab )?kubectl .*\b(exec|logs|top)\b`)

// finish runs a command to its end.
func (r *docRunner) finish(c *docCommand, rule docRule) {
	r.t.Helper()
	begun := time.Now()
	want := rule.status
	if len(c.input) > 0 {
		want = ExitOK
	}
	status, out, both := r.try(c, rule)
	for ; status != want && unready.MatchString(c.text) && time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		status, out, both = r.try(c, rule)
	}
	r.t.Logf("%s: %s: %.1f s, status %d", c.where, c.plain(), time.Since(begun).Seconds(), status)
	if status != want {
		r.t.Errorf("%s: %s: status %d, want %d\n%s", c.where, c.text, status, want, both)
	}
	r.compare(c, both)
	var made struct{ ID string }
	if json.Unmarshal([]byte(out), &made) == nil && made.ID != "" {
		r.id = made.ID
	}
}

// try runs a command once, and returns what it printed on its standard output, and in all.
func (r *docRunner) try(c *docCommand, rule docRule) (status int, out, both string) {
	ctx, cancel := context.WithTimeout(r.t.Context(), docPatience)
	defer cancel()
	cmd := r.command(ctx, c, rule.with)
	var stdout bytes.Buffer
	printed := &docOutput{}
	cmd.Stdin = strings.NewReader(strings.Join(append(c.input, ""), "\n"))
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, printed), printed
	if err := cmd.Run(); cmd.ProcessState == nil {
		r.t.Fatalf("%s: %s: %v", c.where, c.text, err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), printed.String()
}

var digits = regexp.MustCompile(`\d+(\.\d+)?`)

// compare looks for the lines that the document shows, whatever numbers are in them.
func (r *docRunner) compare(c *docCommand, printed string) {
	r.t.Helper()
	have := map[string]bool{}
	for line := range strings.Lines(printed) {
		have[digits.ReplaceAllString(strings.TrimSpace(line), "N")] = true
	}
	for _, line := range c.output {
		if line = strings.TrimSpace(line); line != "" && !have[digits.ReplaceAllString(line, "N")] {
			r.t.Errorf("%s: %s does not print %q, but\n%s", c.where, c.text, line, printed)
		}
	}
}

// start runs a command that ends when the next of its kind is started, or the document ends.
func (r *docRunner) start(c *docCommand, until string) {
	r.t.Helper()
	r.end()
	plain := *c
	plain.text = "exec " + c.plain()
	if assigned, program, ok := strings.Cut(c.plain(), " "); ok && strings.Contains(assigned, "=") {
		plain.text = assigned + " exec " + program
	}
	cmd := r.command(context.Background(), &plain, "")
	r.printed = &docOutput{}
	cmd.Stdout, cmd.Stderr = r.printed, r.printed
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %s: %v", c.where, c.text, err)
	}
	r.background, r.absent = cmd, false
	gone := make(chan struct{})
	r.printed.gone = gone
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(r.printed.String(), until); time.Sleep(20 * time.Millisecond) {
		select {
		case <-gone:
			r.t.Fatalf("%s: %s ends by itself\n%s", c.where, c.text, r.printed)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: %s does not say %q\n%s", c.where, c.text, until, r.printed)
		}
	}
	r.compare(c, r.printed.String())
}

// end stops what runs in the background.
func (r *docRunner) end() {
	if r.background == nil {
		return
	}
	_ = r.background.Process.Signal(syscall.SIGINT)
	<-r.printed.gone
	r.background = nil
}

// docOutput is what a command in the background has printed.
type docOutput struct {
	mu   sync.Mutex
	b    bytes.Buffer
	gone <-chan struct{}
}

func (o *docOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *docOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
