package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/app/kit"
)

// pipePatience is how long the end of a process waits for its input and output to end too.
const pipePatience = 500 * time.Millisecond

// passed are the variables of the agent's that kubectl and helm get.
var passed = []string{"HELM_NAMESPACE", "HELM_DEBUG", "HELM_MAX_HISTORY", "HELM_KUBECONTEXT"}

// child returns the program that runs a tool of the lab's own binary as a process.
func (b *Box) child(name string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		dir, err := b.hostDir(env.Dir)
		if err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
			return kit.Exit(1)
		}
		r := &rewriter{tool: name, dir: b.dir, cwd: env.Dir}
		var spooled []string
		r.open = func(fd string) (string, bool) {
			file, err := b.spool(env, fd)
			if err != nil {
				return "", false
			}
			spooled = append(spooled, file)
			return file, true
		}
		defer func() {
			for _, file := range spooled {
				_ = b.fs.Remove(file)
			}
		}()
		args := r.args(env.Args)
		config := env.Getenv("KUBECONFIG")
		if config == "" {
			config = kubeconfigFile
		}
		files := filepath.SplitList(config)
		for i, f := range files {
			files[i] = filepath.Join(b.dir, filepath.FromSlash(env.Path(f)))
		}
		if err := b.checkConfigs(append(slices.Clone(files), kubeconfigFlags(args)...), dir); err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
			return kit.Exit(1)
		}
		return b.start(ctx, env, dir, args, strings.Join(files, string(filepath.ListSeparator)))
	}
}

// start runs the process to its end.
func (b *Box) start(ctx context.Context, env *kit.Env, dir string, args []string, kubeconfig string) error {
	line := slices.Concat(b.self, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = dir
	cmd.Env = append(tool.Environ(b.dir, b.port),
		"KUBECONFIG="+kubeconfig, "HOME="+filepath.Join(b.dir, home), "TMPDIR="+filepath.Join(b.dir, "tmp"),
		"PATH="+filepath.Join(b.dir, "bin"), // There is nothing in it.
		"HELM_NO_PLUGINS=1", "TERM=dumb", "TZ=UTC", "NO_COLOR=1",
	)
	for _, name := range passed {
		if v := env.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	stdout, stderr := &hider{w: env.Stdout, what: []byte(b.dir)}, &hider{w: env.Stderr, what: []byte(b.dir)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = env.Stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipePatience
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it may have left
	}
	stdout.flush()
	stderr.flush()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return kit.Exit(kit.ExitSignal + int(syscall.SIGKILL))
	case isExit:
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return kit.Exit(kit.ExitSignal + int(s.Signal()))
		}
		return kit.Exit(exit.ExitCode())
	case errors.Is(err, exec.ErrWaitDelay), err == nil:
		return nil
	}
	return fmt.Errorf("%s cannot be run: %w", args[0], err)
}

// hostDir is the directory of the host that stands for one of the agent's. It is in the scratch
// directory, whatever links there are.
func (b *Box) hostDir(dir string) (string, error) {
	name := filepath.Join(b.dir, filepath.FromSlash(clean(dir)))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fmt.Errorf("%s: no such directory", dir)
	}
	if real != b.dir && !strings.HasPrefix(real, b.dir+string(filepath.Separator)) {
		return "", fmt.Errorf("%s leads out of the file system", dir)
	}
	return real, nil
}

// spool saves what can be read from a descriptor of the shell's, which no process of the host has,
// to a file.
func (b *Box) spool(env *kit.Env, fd string) (string, error) {
	in, err := env.FS.OpenFile(fd, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer in.Close()
	name := fmt.Sprintf("/tmp/.fd-%d", b.spools.Add(1))
	out, err := b.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return "", err
	}
	return name, out.Close()
}

// kubeconfigFlags are the values of --kubeconfig.
func kubeconfigFlags(args []string) (files []string) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--kubeconfig="); ok {
			files = append(files, v)
		} else if a == "--kubeconfig" && i+1 < len(args) {
			files = append(files, args[i+1])
		}
	}
	return files
}

// checkConfigs refuses kubeconfigs that have a program run. Confinement would too, where there is
// any.
func (b *Box) checkConfigs(files []string, dir string) error {
	for _, file := range files {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		name, err := filepath.Rel(b.dir, file)
		if err != nil {
			continue
		}
		data, err := b.fs.root.ReadFile(name)
		if err != nil {
			continue // Whoever reads it will say so.
		}
		config, err := clientcmd.Load(data)
		if err != nil {
			continue
		}
		for user, info := range config.AuthInfos {
			if info.Exec != nil || info.AuthProvider != nil {
				return fmt.Errorf("user %q of /%s runs a program for its credentials, which is not allowed here", user, filepath.ToSlash(name))
			}
		}
	}
	return nil
}
