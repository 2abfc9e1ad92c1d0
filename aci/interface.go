package aci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/aci/internal/box"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/observe"
)

// Options are what an interface needs.
type Options struct {
	Task string // one of term.Tasks
	// Questions are those of an incident, in the order in which they are asked.
	Questions []string
	App       *app.App
	Observer  *observe.Observer
	// Namespaces are those that actions may be about; none for all.
	Namespaces []string
	// Dial connects into the cluster's network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Kubeconfig is the agent's own: server, CA and token of the guard.
	Kubeconfig []byte
	// API is the IP address and port of the guard. Confined programs may connect to nothing else, and cannot
	// resolve names.
	API string
	// Transactions keep or take back what the agent writes. It may be nil: then there are none.
	Transactions Transactions
	// Pager is that of a shift. It may be nil for other tasks.
	Pager Pager
	// Dir is the scratch root, a directory of the host. The caller makes and removes it.
	Dir string
	// Self is the command line that runs a tool of this program confined, such as {"/proc/self/exe", "tool"}. The
	// name of the tool and its arguments follow it.
	Self []string
}

// Interface is one agent's way to the cloud. Actions may be done concurrently; those of the shell
// wait for one another.
type Interface struct {
	o       Options
	actions []*Action
	box     *box.Box
	client  kubernetes.Interface // with the agent's rights
	now     func() time.Time
	outputs counter
	tamer   *tamer  // of the shell's connections; nil without transactions
	inquiry inquiry // of an incident
	archive Archive // of an incident that is over; nil for a cluster
}

// dnsDefault is where a cluster's DNS is, unless it says otherwise.
const (
	dnsDefault = "10.96.0.10"
	dnsTimeout = 5 * time.Second
)

// New makes an interface.
func New(o Options) (*Interface, error) {
	if !slices.Contains(term.Tasks, o.Task) {
		return nil, fmt.Errorf("task %q: use one of %s", o.Task, strings.Join(term.Tasks, ", "))
	}
	if o.Task == term.Incident && len(o.Questions) == 0 {
		return nil, errors.New("an incident needs questions")
	}
	if o.App == nil || o.Observer == nil || o.Dial == nil || len(o.Self) == 0 {
		return nil, errors.New("the interface needs an application, an observer, a way to dial and a " +
			"command line for tools")
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the agent's kubeconfig: %w", err)
	}
	config.QPS = -1 // An agent is slow enough.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the agent's kubeconfig: %w", err)
	}
	i := &Interface{o: o, client: client, now: time.Now, actions: Actions(o.Task)}
	i.inquiry.questions = o.Questions
	dns, dial := i.dns(), o.Dial
	if o.Transactions != nil {
		i.tamer = &tamer{dial: o.Dial, open: o.Transactions.Restrained, dns: net.JoinHostPort(dns, "53")}
		dial = i.tamer.dialContext
	}
	i.box, err = box.New(box.Options{
		Dir: o.Dir, Dial: dial, DNS: dns, API: o.API, Kubeconfig: o.Kubeconfig, Self: o.Self,
		Search: []string{o.App.Namespace + ".svc.cluster.local", "svc.cluster.local", "cluster.local"},
	})
	return i, err
}

// dns finds the cluster's DNS.
func (i *Interface) dns() string {
	ctx, cancel := context.WithTimeout(context.Background(), dnsTimeout)
	defer cancel()
	s, err := i.client.CoreV1().Services("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil {
		return dnsDefault
	}
	return cmp.Or(s.Spec.ClusterIP, dnsDefault)
}

// Actions returns the actions of a task in a fixed order, submit last.
func Actions(task string) []*Action {
	return slices.Concat([]*Action{
		getLogs, getMetrics, readMetrics, getTraces, readTraces, getAlerts, getTopology, execShell,
	}, transactionActions, []*Action{submitAction(task)})
}

// Actions returns the actions of the interface's task in a fixed order, submit last.
func (i *Interface) Actions() []*Action { return slices.Clone(i.actions) }

// Confinement says how far the programs of the agent's shell are confined on this machine.
func (i *Interface) Confinement() string { return i.box.Confinement() }

// Close ends what the agent's shell left running. The scratch root stays.
func (i *Interface) Close() error { return i.box.Close() }

// Hold has the time limit of the command that exec_shell runs, if it does, stand still until release.
func (i *Interface) Hold() (release func()) { return i.box.Hold() }

// Result is what an action returns to the agent.
type Result struct {
	Text      string
	Submitted bool // the agent's work is done
	Answer    any  // what was submitted: string, int64, float64, bool, nil, []any or map[string]any
	// Question is the one of an incident that was answered, and Next the one that comes now; empty for none.
	Question, Next string
	Failed         bool // the action could not be taken, or was broken off; the text says why
}

// Do takes an action. Whatever goes wrong is in the result's text, for the agent to read.
func (i *Interface) Do(ctx context.Context, c *Call) Result {
	r, note := i.do(ctx, c)
	for _, n := range []string{note, c.Note} {
		if n != "" {
			r.Text = "Note: " + n + "\n" + r.Text
		}
	}
	return r
}

func (i *Interface) do(ctx context.Context, c *Call) (r Result, note string) {
	at := slices.IndexFunc(i.actions, func(a *Action) bool { return a.Name == c.Name })
	if at < 0 {
		return Result{Failed: true, Text: i.unknown(c.Name)}, ""
	}
	a := i.actions[at]
	if a.Kind == Submit && i.o.Task == term.Incident {
		return i.inquiry.submit(ctx, i, c)
	}
	args, note, err := a.bind(c)
	if err != nil {
		return Result{Failed: true, Text: err.Error()}, ""
	}
	if err := i.allowed(args); err != nil {
		return Result{Failed: true, Text: "Error: " + err.Error()}, ""
	}
	r = a.do(ctx, i, args)
	r.Text = i.bound(a.Name, r.Text)
	return r, note
}

// allowed refuses arguments that name a namespace which the agent may not look into. None is all of them.
func (i *Interface) allowed(args reflect.Value) error {
	if len(i.o.Namespaces) == 0 || args.Elem().Kind() != reflect.Struct {
		return nil
	}
	n := args.Elem().FieldByName("Namespace")
	if n.IsValid() && !slices.Contains(i.o.Namespaces, n.String()) {
		return fmt.Errorf("namespace %q is not shown; there is %s", n.String(), strings.Join(i.o.Namespaces, ", "))
	}
	return nil
}

// unknown is the reply to an unknown action.
func (i *Interface) unknown(name string) string {
	var names []string
	for _, a := range i.actions {
		names = append(names, a.Name)
	}
	return fmt.Sprintf("Invalid action: %s.%s The actions are %s.", short(name), didYouMean(name, names),
		strings.Join(names, ", "))
}

// failed is the result of an action that could not be done.
func failed(format string, args ...any) Result {
	return Result{Failed: true, Text: "Error: " + fmt.Sprintf(format, args...)}
}
