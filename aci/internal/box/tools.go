package box

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/kit"
)

// toolNames are the programs that are processes.
var toolNames = []string{"kubectl", "helm"}

// passed are the variables of the agent's that kubectl and helm get.
var passed = []string{"HELM_NAMESPACE", "HELM_DEBUG", "HELM_MAX_HISTORY", "HELM_KUBECONTEXT", kubercGate}

// tool runs a process for the shell and tells it how that ended. The process ends with the shell's interest.
func (h *host) tool(q *toolRequest, files []*os.File) {
	defer closeAll(files[1:])
	answers, err := newLine(files[0])
	if err != nil {
		return
	}
	defer answers.close()
	answer := h.runTool(q, answers, files[1], files[2], files[3])
	_ = answers.send(answer)
}

// failedTool is the answer for a process that could not be started.
func failedTool(note string) *toolAnswer { return &toolAnswer{Status: kit.ExitNotRunnable, Note: note} }

func (h *host) runTool(q *toolRequest, answers *line, stdin, stdout, stderr *os.File) *toolAnswer {
	b := h.box
	var args []string
	for _, a := range q.Args {
		args = append(args, string(a))
	}
	if len(args) == 0 || !slices.Contains(toolNames, args[0]) {
		return failedTool("no such program")
	}
	dir, err := b.hostDir(string(q.Dir))
	if err != nil {
		return failedTool(err.Error())
	}
	mine, its, err := os.Pipe() // Its end comes with ours.
	if err != nil {
		return failedTool(noFork)
	}
	defer its.Close()
	full := measure(b.root) >= b.limits.Disk
	cmd := tool.Command(b.self, b.place(full), mine, stderr, args...)
	words := &output{}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, stdin, stdout, words
	cmd.Env = append(cmd.Env, b.toolVars(q.Vars)...)
	state, err := h.startTool(cmd, full)
	mine.Close()
	if err != nil {
		return failedTool(noFork)
	}
	closeAll([]*os.File{stdin, stdout, stderr})
	go func() {
		var none message
		_, _ = answers.receive(&none) // There is nothing to receive: the shell has ended it, or itself.
		h.endTool(cmd, "")
	}()
	err = cmd.Wait()
	h.endTool(cmd, "")
	tool.Kill(cmd) // what it may have left
	return h.judgeEnd(err, state, words)
}

// noFork is what bash says when there are too many processes.
const noFork = "fork: retry: Resource temporarily unavailable"

// running is what is known of a process.
type running struct {
	readOnly bool
	why      string // it was ended, if for a reason
}

// startTool starts a process, if there are not too many.
func (h *host) startTool(cmd *exec.Cmd, readOnly bool) (*running, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.tools) >= h.box.limits.Tools {
		return nil, syscall.EAGAIN
	}
	if err := tool.Start(cmd); err != nil {
		return nil, err
	}
	r := &running{readOnly: readOnly}
	h.tools[cmd] = r
	return r, nil
}

// endTool kills a process if it still runs.
func (h *host) endTool(cmd *exec.Cmd, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, runs := h.tools[cmd]; runs {
		r.why = why
		tool.Kill(cmd)
		delete(h.tools, cmd)
	}
}

// all is true of all processes.
func all(*running) bool { return true }

// endTools kills all processes but the shell that a condition holds for.
func (h *host) endTools(why string, which func(*running) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for cmd, r := range h.tools {
		if which(r) {
			r.why = why
			tool.Kill(cmd)
			delete(h.tools, cmd)
		}
	}
}

// judgeEnd says how a process ended, and why if the agent should know.
func (h *host) judgeEnd(err error, r *running, words *output) *toolAnswer {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return &toolAnswer{}
	}
	a := &toolAnswer{Status: kit.ExitNotRunnable, Note: r.why}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return a
	}
	a.Status = exit.ExitCode()
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		a.Status = kit.ExitSignal + int(s.Signal())
	}
	// Go's runtime ends a process that crashes with 2, and says why.
	if text, _ := words.close(); a.Note == "" && strings.TrimSpace(text) != "" {
		a.Note = lastWords(text)
	}
	if a.Note == "" && (r.readOnly || measure(h.box.root) > h.box.limits.Disk) {
		a.Note = noSpace // It may have failed by itself, before anybody looked at what it wrote.
	}
	return a
}

// toolVars is the environment of a process.
func (b *Box) toolVars(vars map[string][]byte) []string {
	list := []string{
		"HOME=" + b.inTool(home), "TMPDIR=" + b.inTool("/tmp"), "PATH=" + b.inTool("/bin"), // There is nothing in it.
		"HELM_NO_PLUGINS=1",
	}
	for _, name := range append([]string{"KUBECONFIG", kubercVar}, passed...) {
		if v, ok := vars[name]; ok {
			list = append(list, name+"="+string(v))
		}
	}
	return list
}

// inTool is a path of the agent's as a process sees it.
func (b *Box) inTool(name string) string {
	if b.ownRoot {
		return name
	}
	return filepath.Join(b.dir, filepath.FromSlash(name))
}

// hostDir is the directory of the host that stands for one of the agent's. It is in the scratch
// directory, whatever links there are.
func (b *Box) hostDir(dir string) (string, error) {
	name := filepath.Join(b.dir, filepath.FromSlash(clean(dir)))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", errors.New(dir + ": no such directory")
	}
	if real != b.dir && !strings.HasPrefix(real, b.dir+string(filepath.Separator)) {
		return "", errors.New(dir + ": no such directory")
	}
	return real, nil
}
