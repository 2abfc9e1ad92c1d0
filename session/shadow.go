package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Shadow is an environment that is live: a cluster with somebody's application in it. Nothing is deployed, injected or
// sent there. The agent reads, and what it would write is recorded as a proposal; see [guard.Options].
type Shadow struct {
	// Cloud is the cluster. The caller closes it.
	Cloud cloud.Cloud
	// Namespaces are what the agent may read. The application is in the first.
	Namespaces []string
	// Telemetry is where metrics and traces are. What is not given, the agent does not have.
	Telemetry observe.External
	Scratch   string   // directory for temporary files; empty for the system's
	Self      []string // see [Local]

	tell     Tell
	way      *access
	observer *observe.Observer
}

var _ Environment = (*Shadow)(nil)

// ShadowProblem is what an agent is asked in a shadow run: one of the tasks, about whatever is in the namespaces.
func ShadowProblem(task problem.Task, namespaces []string) *problem.Problem {
	name := namespaces[0]
	return &problem.Problem{
		ID: "shadow-" + string(task), Task: task, Origin: problem.Ours,
		Document: &problem.Document{
			ID: "shadow-{task}", Title: "a live system", App: name, Tasks: []problem.Task{task},
		},
		App: &app.App{
			Name: name, Title: name, Namespace: name, Label: "app",
			Description: "A live system, in the namespaces " + strings.Join(namespaces, ", ") + ".",
			Operations:  []string{"What its users do is not known"},
		},
	}
}

// shadowNotice is what an agent is told of a shadow run.
const shadowNotice = `

This is a shadow run. The system is live and serves real users, so you can look, and nothing that you write is carried
out. Make each change that you would make, with the command that you would use: it is refused, and recorded as your
proposal for the people who run the system. Secrets, other namespaces, and shells in pods are not open to you.`

// errUnreachable is what a shadow run dials.
var errUnreachable = errors.New("this is a shadow run: the cluster's network cannot be reached, " +
	"and telemetry is there only if its URL was given")

func noDial(context.Context, string, string) (net.Conn, error) { return nil, errUnreachable }

// Prepare puts the guard before the cluster.
func (s *Shadow) Prepare(ctx context.Context, set Setting, tell Tell) (_ Admission, err error) {
	s.tell = tell
	a := &access{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp(s.Scratch, "aiopslab-agent-"); err != nil {
		return Admission{}, err
	}
	root := filepath.Join(a.dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return Admission{}, err
	}
	a.guard, err = guard.Start(ctx, guard.Options{
		Upstream: s.Cloud.RESTConfig(), Shadow: true, Namespaces: s.Namespaces, Log: set.Log,
		Journal: func(e guard.Entry) { s.tell(record.ProposalEvent, e) },
	})
	if err != nil {
		return Admission{}, err
	}
	if a.kubeconfig, err = a.guard.Kubeconfig(s.Namespaces[0]); err != nil {
		return Admission{}, err
	}
	if err := s.observe(ctx, a.kubeconfig); err != nil {
		return Admission{}, err
	}
	p := set.Problem
	a.aci, err = aci.New(aci.Options{
		Task: string(p.Task), Questions: questionsOf(p), App: p.App, Observer: s.observer, Dial: noDial,
		Namespaces: s.Namespaces, Kubeconfig: a.kubeconfig, API: a.guard.Address(), Dir: root, Self: s.Self,
		Transactions: a.guard,
	})
	if err != nil {
		a.aci = nil // It would be an interface with nothing in it.
		return Admission{}, err
	}
	s.way = a
	return Admission{Kubeconfig: a.kubeconfig, Confinement: a.aci.Confinement()}, nil
}

// observe looks whether the namespaces are there, and opens the telemetry. Both see what the agent may see.
func (s *Shadow) observe(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, ns := range s.Namespaces {
		if _, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("read the namespace %s: %w", ns, err)
		}
	}
	if s.observer, err = observe.New(config, noDial, nil); err != nil {
		return err
	}
	return s.observer.Use(s.Telemetry)
}

// Act does what a response asks for.
func (s *Shadow) Act(ctx context.Context, response string, begun func(action string)) (Reply, error) {
	if s.way == nil {
		return Reply{}, errNoWay
	}
	return s.way.act(ctx, response, begun)
}

// Export is for agents that learn from a healthy system, and nobody knows when this one was healthy.
func (s *Shadow) Export(context.Context, agent.Interval) (string, error) {
	return "", errors.New("a shadow run has no time at which the system is known to be well")
}

// Dismiss closes the agent's access.
func (s *Shadow) Dismiss(context.Context) error {
	if s.way != nil {
		s.way.close()
		_ = s.way.guard.Close()
		s.way = nil
	}
	if s.observer != nil {
		s.observer.Close()
	}
	return nil
}

// Watch does nothing: there is nothing to judge, and nothing to undo.
func (s *Shadow) Watch(context.Context, bool) error { return nil }

// Done returns nil: if the environment died, so would this process.
func (s *Shadow) Done() <-chan struct{} { return nil }

// Err is nil.
func (s *Shadow) Err() *Death { return nil }

// judgeShadow says what came of a shadow run. Nobody knows what is right, so there is no verdict.
func (h *history) judgeShadow() Verdict {
	s := h.submission
	if c := Class(s.Class); !s.Submitted && c != AgentFailed {
		return Verdict{c, s.Reason, h.metrics(nil)}
	}
	var list []string
	for _, e := range h.proposals {
		what := Proposed(e)
		// A client that is refused one protocol tries the next.
		again := e.Verb == "connect" && len(list) > 0 && list[len(list)-1] == what
		if !e.DryRun && !again {
			list = append(list, what)
		}
	}
	why := fmt.Sprintf("%d proposals", len(list))
	if len(list) == 1 {
		why = "1 proposal"
	}
	if !s.Submitted {
		why += "; the agent did not submit: " + s.Reason
	}
	res := h.metrics(nil)
	delete(res, "success")
	delete(res, "correct_answer")
	res["proposals"] = append([]string{}, list...)
	return Verdict{ShadowRun, why, res}
}

// Proposed says in words what a proposal is.
func Proposed(e guard.Entry) string {
	what := e.Verb + " " + strings.TrimSuffix(e.Resource+"/"+e.Subresource, "/")
	if e.Name != "" {
		what += " " + e.Name
	}
	if e.Namespace != "" {
		what += " in " + e.Namespace
	}
	if len(e.Command) > 0 {
		what += ": " + strings.Join(e.Command, " ")
	}
	return what
}
