package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"

	"github.com/aiopslab/aiopslab/internal/socketpair"
)

// pipePatience is how long the end of a process waits for its output to end too.
const pipePatience = 500 * time.Millisecond

// child returns the program that has the environment run a tool as a process.
func (m *machine) child(name string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		r := &rewriter{tool: name, dir: m.prefix, cwd: env.Dir}
		var spooled []string
		r.open = func(fd string) (string, bool) {
			file, err := m.spool(env, fd)
			if err != nil {
				return "", false
			}
			spooled = append(spooled, file)
			return file, true
		}
		defer func() {
			for _, file := range spooled {
				_ = m.fs.Remove(file)
			}
		}()
		args := r.args(env.Args)
		config := env.Getenv("KUBECONFIG")
		if config == "" {
			config = kubeconfigFile
		}
		files := filepath.SplitList(config)
		for i, f := range files {
			files[i] = env.Path(f)
		}
		if err := m.checkConfigs(env, append(slices.Clone(files), kubeconfigFlags(env.Args)...)); err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
			return kit.Exit(1)
		}
		for i, f := range files {
			files[i] = r.host(f)
		}
		q := &toolRequest{
			Dir:  []byte(env.Dir),
			Vars: map[string][]byte{"KUBECONFIG": []byte(strings.Join(files, string(filepath.ListSeparator)))},
		}
		for _, a := range args {
			q.Args = append(q.Args, []byte(a))
		}
		for _, name := range passed {
			if v := env.Getenv(name); v != "" {
				q.Vars[name] = []byte(v)
			}
		}
		if v := env.Getenv(kubercVar); v != "" && v != kubercOff {
			q.Vars[kubercVar] = []byte(r.host(env.Path(v))) // for `kubectl kuberc`
		}
		defer m.fs.measureAgain()
		return m.launch(ctx, env, q)
	}
}

// launch has the environment run a process and carries its input and output.
func (m *machine) launch(ctx context.Context, env *kit.Env, q *toolRequest) error {
	var far, near []*os.File // ends of the process, and ours
	defer func() { closeAll(far); closeAll(near) }()
	here, there, err := socketpair.New()
	if err != nil {
		return errors.New(noFork)
	}
	far = append(far, there)
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			here.Close()
			return errors.New(noFork)
		}
		if i == 0 {
			r, w = w, r
		}
		near, far = append(near, r), append(far, w)
	}
	answers, err := newLine(here)
	if err != nil {
		return err
	}
	defer answers.close()
	if err := m.line.send(&message{Tool: q}, far...); err != nil {
		return err
	}
	closeAll(far)
	far = nil
	stop := context.AfterFunc(ctx, func() { answers.close() }) // The environment ends it.
	defer stop()
	go func() {
		_, _ = io.Copy(near[0], env.Stdin)
		near[0].Close()
	}()
	drained := make(chan struct{}, 2)
	for i, w := range []io.Writer{env.Stdout, env.Stderr} {
		go func() {
			m.carry(w, near[i+1])
			drained <- struct{}{}
		}()
	}
	var a toolAnswer
	if _, err := answers.receive(&a); err != nil {
		return kit.Exit(kit.ExitSignal + 9)
	}
	patience := time.After(pipePatience)
	for range 2 {
		select {
		case <-drained:
		case <-patience:
		}
	}
	if a.Note != "" {
		fmt.Fprintf(env.Stderr, "%s: %s\n", q.Args[0], a.Note)
	}
	return kit.Exit(a.Status)
}

// carry copies what a process prints, without the path of the scratch directory. A process whose
// output nobody reads learns that.
func (m *machine) carry(w io.Writer, from *os.File) {
	defer from.Close()
	if m.prefix == "" {
		_, _ = io.Copy(w, onlyReader{from})
		return
	}
	h := &hider{w: w, what: []byte(m.prefix)}
	_, _ = io.Copy(h, onlyReader{from})
	h.flush()
}

// spool saves what can be read from a descriptor of the shell's, which no process of the host has,
// to a file.
func (m *machine) spool(env *kit.Env, fd string) (string, error) {
	in, err := env.FS.OpenFile(fd, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer in.Close()
	return m.save(in)
}

// save writes to a new file.
func (m *machine) save(in io.Reader) (string, error) {
	name := fmt.Sprintf("/tmp/.fd-%d", m.spools.Add(1))
	out, err := m.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return "", err
	}
	return name, out.Close()
}
