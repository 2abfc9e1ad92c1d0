package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
)

// approverTimeout is how long a command may think about a change.
const approverTimeout = 5 * time.Minute

// policyFlags are --policy and --approver.
type policyFlags struct {
	name, approver string
	policy         *policy.Policy // once it was read
	elsewhere      bool           // whether ask means somebody who is not at this terminal

	asking sync.Mutex
}

func (p *policyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&p.name, "policy", "", "what the agent may change: `policy` "+
		strings.Join(policy.Names(), ", ")+", or a YAML file; by default whatever its rights allow")
	c.Flags().StringVar(&p.approver, "approver", "", "`who` approves of changes that the policy has asked for: ask, "+
		"a person at this terminal, of serve somebody over HTTP, of mcp the client's user; auto, always; deny, never; "+
		"or a command that reads the change as JSON and exits with 0 for yes")
	completeFlag(c, "policy", policy.Names)
	completeFlag(c, "approver", func() []string { return []string{"ask", "auto", "deny"} })
}

// read reads the policy, if there is one. Terminal says that a person can be asked.
func (p *policyFlags) read(terminal bool) (err error) {
	if p.approver == "ask" && !terminal && !p.elsewhere {
		return fail(ExitUsage, errors.New("--approver ask: there is no terminal here that is free to ask at"),
			"Name a command that decides, or auto or deny.")
	}
	if p.name == "" {
		if p.approver != "" {
			return fail(ExitUsage, fmt.Errorf("--approver %s: nothing is asked without --policy", p.approver), "")
		}
		return nil
	}
	if p.policy, err = policy.Find(p.name); err != nil {
		return fail(ExitUsage, fmt.Errorf("--policy: %w", err), "docs/policies.md tells how one is written.")
	}
	return nil
}

// asksElsewhere reports whether questions are answered by a way of their own.
func (p *policyFlags) asksElsewhere() bool {
	return p.policy != nil && p.elsewhere && p.approver == "ask"
}

// portable says why pods of a cluster cannot have the policy: they have none of this machine's files and commands.
func (p *policyFlags) portable() error {
	switch {
	case p.name != "" && !slices.Contains(policy.Names(), p.name):
		return fail(ExitUsage, fmt.Errorf("--policy %s: a file is for one machine, not for --on cluster", p.name),
			"There are "+strings.Join(policy.Names(), ", ")+".")
	case p.approver != "" && p.approver != "auto" && p.approver != "deny":
		return fail(ExitUsage, fmt.Errorf("--approver %s: in pods it is auto or deny", p.approver), "")
	}
	return nil
}

// args are the flags again, for a run of a campaign, in which nobody sits at a terminal.
func (p *policyFlags) args() (list []string) {
	if p.name != "" {
		list = append(list, "--policy", p.name)
	}
	if p.approver != "" {
		list = append(list, "--approver", p.approver)
	}
	return list
}

// approve is who is asked; nil for nobody. Where terminal is set, that is by default a person.
func (p *policyFlags) approve(s *State, terminal bool) func(context.Context, guard.Question) guard.Answer {
	who := p.approver
	if who == "" && terminal {
		who = "ask"
	}
	switch {
	case p.policy == nil || who == "":
		return nil
	case who == "auto":
		return func(context.Context, guard.Question) guard.Answer { return guard.Answer{Approved: true, By: "auto"} }
	case who == "deny":
		return func(context.Context, guard.Question) guard.Answer {
			return guard.Answer{By: "deny", Why: "nothing is approved"}
		}
	case p.asksElsewhere():
		return nil
	case who == "ask":
		in := bufio.NewReader(s.Stdin)
		return func(_ context.Context, q guard.Question) guard.Answer {
			p.asking.Lock()
			defer p.asking.Unlock()
			return askPerson(in, s.Stderr, q)
		}
	}
	return func(ctx context.Context, q guard.Question) guard.Answer { return askCommand(ctx, who, q) }
}

// askPerson asks who sits at the terminal.
func askPerson(in *bufio.Reader, out io.Writer, q guard.Question) guard.Answer {
	fmt.Fprintf(out, "\nThe agent wants to %s\n  risk %s: %s\n", visible(q.Change.String()), q.Risk, visible(q.Because))
	if len(q.Request) > 0 {
		fmt.Fprintf(out, "  with %s\n", clip(visible(string(q.Request)), 400))
	}
	fmt.Fprint(out, "Approve? [y/N, a reason may follow] ")
	line, err := in.ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(out)
		return guard.Answer{By: "a person", Why: "nobody answered"}
	}
	yes, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(strings.TrimSuffix(yes, ",")) {
	case "y", "yes":
		return guard.Answer{Approved: true, By: "a person", Why: strings.TrimSpace(why)}
	case "n", "no":
		return guard.Answer{By: "a person", Why: strings.TrimSpace(why)}
	}
	return guard.Answer{By: "a person", Why: strings.TrimSpace(line)}
}

// maxReason is how much of what a command says is kept.
const maxReason = 500

// askCommand runs a command with the change on its standard input. It approves by its exit status, and the first line
// that it prints is the reason.
func askCommand(ctx context.Context, command string, q guard.Question) guard.Answer {
	ctx, cancel := context.WithTimeout(ctx, approverTimeout)
	defer cancel()
	b, err := json.Marshal(q)
	if err != nil {
		return guard.Answer{By: command, Why: err.Error()}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(b), time.Second
	out, err := cmd.Output()
	why, _, _ := strings.Cut(strings.TrimSpace(string(out[:min(len(out), maxReason)])), "\n")
	if err != nil && why == "" {
		why = err.Error()
	}
	return guard.Answer{Approved: err == nil, By: command, Why: why}
}
