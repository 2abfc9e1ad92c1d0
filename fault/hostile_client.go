package fault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

type hostileClientParams struct {
	Namespace string `yaml:"namespace" doc:"the namespace of the clients, which is made for them"`
	Path      string `yaml:"path" doc:"what they ask for"`
	Flood     int    `yaml:"flood" doc:"how many requests the hostile one has under way at any time"`
}

// Validate implements the check of parameters.
func (p hostileClientParams) Validate() error {
	switch {
	case p.Namespace == "":
		return errors.New(`"namespace" must not be empty`)
	case !strings.HasPrefix(p.Path, "/") || strings.ContainsAny(p.Path, " '\"$`\\"):
		return errors.New(`"path" must begin with / and have no spaces, quotes or $`)
	case p.Flood < 2 || p.Flood > maxFlood:
		return fmt.Errorf(`"flood" must be between 2 and %d`, maxFlood)
	}
	return nil
}

const (
	// maxFlood bounds how many requests there are at once.
	maxFlood = 64
	// clientWindow is how far back a client's own account of its requests is read.
	clientWindow = 5 * time.Second
	clientImage  = "curlimages/curl:8.7.1"
	// maxAccount is how much of it is read.
	maxAccount = 256 << 10
)

var defaultClients = hostileClientParams{Namespace: "partners", Path: "/", Flood: 16}

// partners are the names of clients. Two are drawn, and the first of them is hostile.
var partners = []string{"ad-server", "loyalty-sync", "newsletter", "partner-feed", "price-watch", "stock-report"}

func hostileClient() *Kind {
	return Define(Kind{
		Name:  "hostile_client",
		Title: "A client in the cluster floods a service with requests",
		Description: `Two clients, whose names are drawn, have a Deployment each in a namespace of their own. One asks once a
second; the other has so many requests under way at any time that there is too little left for users. Both are
somebody else's. An operator keeps the hostile one from the service, by a NetworkPolicy, and lets the other one, users
and the application itself through. It is gone when the hostile client tries and gets no answer, by its own account,
also after its pods were replaced by others, the other one is served, and nothing in their namespace was changed.`,
		Cause: Cause{term.Application, term.OperationError},
		Needs: NeedsPolicies,
		Targets: func(a *app.App) []string {
			return services(a, func(s app.Service) bool { return s.Name == a.Frontend.Service })
		},
	}, defaultClients, func(t Target, p hostileClientParams) (Fault, error) {
		p.Namespace = t.Place.Name(p.Namespace)
		if p.Namespace == t.App.Namespace {
			return nil, fmt.Errorf("parameter %q: %s is the application's own", "namespace", p.Namespace)
		}
		return &hostile{hostileClientParams: p, service: t.Service, claimed: t.Place != nil}, nil
	}, func(t Target, p hostileClientParams) []string { return blockade(t, t.Place.Name(p.Namespace)) })
}

// blockade are commands that find out which client asks most, and keep it from a service.
func blockade(t Target, namespace string) []string {
	return []string{fmt.Sprintf(`client=$(for d in $(kubectl get deployment -n %[1]s -o name | cut -d/ -f2); do `+
		`echo $(kubectl logs deployment/$d -n %[1]s --since=10s | wc -l) $d; done | sort -n | tail -n 1 | cut -d' ' -f2)
pods=$(kubectl get pods -n %[1]s -o jsonpath='{range .items[*]}{.status.podIP}{"\n"}{end}' | sort | sed -n 's/^\([0-9]*\.[0-9]*\)\..*/\1.0.0\/16/p' | uniq | paste -sd,)
kubectl apply -f - <<END
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: not-$client}
spec:
  podSelector: {matchLabels: {%[2]s: %[3]s}}
  policyTypes: [Ingress]
  ingress:
  - from:
    - ipBlock: {cidr: 0.0.0.0/0, except: [$pods]}
    - namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [%[1]s]}]}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
      podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [$client]}]}
END`, namespace, t.App.Label, t.Service)}
}

// hostile is a client that floods a service, and one beside it that does not.
type hostile struct {
	hostileClientParams
	service string
	claimed bool // the namespace is there, and is removed by who has made it

	made     []*appsv1.Deployment // the hostile one first; none before an injection
	replaced bool                 // its pods were, once it was blocked
}

// clientScript asks again and again, and writes down what came of it. Who gets no answer waits before it asks again.
const clientScript = `i=0; while [ $i -lt $AT_ONCE ]; do (while true; do ` +
	`curl -s -m 2 -o /dev/null -w '%{http_code}\n' $URL || sleep 1; sleep $PAUSE; done) & i=$((i+1)); done; wait`

// client is the Deployment of a client.
func (f *hostile) client(e *Env, name string, atOnce int, pause string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	amount := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	url := fmt.Sprintf("http://%s.%s:%d%s", f.service, e.App.Namespace, e.App.Frontend.Port, f.Path)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{
				SecurityContext: &v1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(100)),
					SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []v1.Container{{
					Name: name, Image: e.App.Image(clientImage), Command: []string{"sh", "-c", clientScript},
					Env: []v1.EnvVar{
						{Name: "URL", Value: url},
						{Name: "AT_ONCE", Value: fmt.Sprint(atOnce)},
						{Name: "PAUSE", Value: pause},
					},
					Resources: v1.ResourceRequirements{
						Requests: amount("10m", "16Mi"), Limits: amount("500m", "128Mi"),
					},
					SecurityContext: &v1.SecurityContext{
						AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
						Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
					},
				}},
			}},
		},
	}
}

// Inject has both clients ask.
func (f *hostile) Inject(ctx context.Context, e *Env) error {
	if !f.claimed {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
		if _, err := e.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make namespace %s: %w", f.Namespace, err)
		}
	}
	names := e.pick("clients", partners)
	for i, name := range names[:2] {
		d := f.client(e, name, f.Flood, "0")
		if i > 0 {
			d = f.client(e, name, 1, "1")
		}
		made, err := e.Client.AppsV1().Deployments(f.Namespace).Create(ctx, d, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make deployment %s: %w", name, err)
		}
		f.made = append(f.made, made)
	}
	return poll(ctx, "the clients to ask", func(ctx context.Context) (bool, error) {
		for _, d := range f.made {
			if a, err := f.account(ctx, e, d.Name); err != nil || a.answered == 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// Manifest says who is served that should not be, who is not that should, and what was done to what is somebody else's.
func (f *hostile) Manifest(ctx context.Context, e *Env) (string, error) {
	if len(f.made) < 2 {
		return "", nil
	}
	if symptom, err := f.meddled(ctx, e); symptom != "" || err != nil {
		return symptom, err
	}
	bad, err := f.account(ctx, e, f.made[0].Name)
	if err != nil {
		return "", err
	}
	fair, err := f.account(ctx, e, f.made[1].Name)
	if err != nil {
		return "", err
	}
	if symptom := f.judge(bad, fair); symptom != "" || f.replaced {
		return symptom, nil
	}
	if err := f.replace(ctx, e); err != nil {
		return "", err
	}
	f.replaced = true
	return fmt.Sprintf("%s of %s comes back with other pods", f.made[0].Name, f.Namespace), nil
}

// replace gives the hostile client other pods, once it is blocked for the first time: who has shut an address out has
// not shut the client out.
func (f *hostile) replace(ctx context.Context, e *Env) error {
	pods, err := f.pods(ctx, e, f.made[0].Name)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := deletePod(ctx, e, &pods[i]); err != nil {
			return err
		}
	}
	return nil
}

// judge says what is wrong with how the clients fare, or "".
func (f *hostile) judge(bad, fair ledger) string {
	switch {
	case bad.answered > 0:
		return fmt.Sprintf("%s of %s got %d answers from %s within %v", f.made[0].Name, f.Namespace, bad.answered,
			f.service, clientWindow)
	case bad.failed == 0:
		return fmt.Sprintf("%s of %s does not even ask any more: it was stopped, not blocked", f.made[0].Name,
			f.Namespace)
	case fair.answered == 0:
		return fmt.Sprintf("%s of %s, which does no harm, is not served any more", f.made[1].Name, f.Namespace)
	}
	return ""
}

// meddled says what was changed in the clients' namespace, or "".
func (f *hostile) meddled(ctx context.Context, e *Env) (string, error) {
	policies, err := e.Client.NetworkingV1().NetworkPolicies(f.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	if len(policies.Items) > 0 {
		return fmt.Sprintf("there is a NetworkPolicy in %s, which is somebody else's", f.Namespace), nil
	}
	for _, d := range f.made {
		now, err := e.Client.AppsV1().Deployments(f.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("%s of %s is gone, which is somebody else's", d.Name, f.Namespace), nil
		case err != nil:
			return "", err
		case now.UID != d.UID || !equality.Semantic.DeepEqual(now.Spec, d.Spec):
			return fmt.Sprintf("%s of %s was changed, which is somebody else's", d.Name, f.Namespace), nil
		case now.Status.ReadyReplicas < *d.Spec.Replicas:
			return fmt.Sprintf("%s of %s does not run, which is somebody else's", d.Name, f.Namespace), nil
		}
	}
	return "", nil
}

// ledger is what came of a client's last requests.
type ledger struct{ answered, failed int }

// account reads what a client has written down.
func (f *hostile) account(ctx context.Context, e *Env, name string) (a ledger, err error) {
	pods, err := f.pods(ctx, e, name)
	if err != nil {
		return a, err
	}
	for _, p := range pods {
		logs, err := e.Client.CoreV1().Pods(f.Namespace).GetLogs(p.Name, &v1.PodLogOptions{
			SinceSeconds: ptr.To(int64(clientWindow.Seconds())), LimitBytes: ptr.To(int64(maxAccount)),
		}).Stream(ctx)
		if err != nil {
			return a, err
		}
		a = a.read(logs)
		_ = logs.Close() // It was only read.
	}
	return a, nil
}

// pods are those of a client that run.
func (f *hostile) pods(ctx context.Context, e *Env, name string) ([]v1.Pod, error) {
	list, err := e.Client.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p v1.Pod) bool {
		return p.Status.Phase != v1.PodRunning || p.DeletionTimestamp != nil
	}), nil
}

// read counts the lines of an account: the status of an answer, or 000 for none.
func (a ledger) read(r io.Reader) ledger {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		switch line := strings.TrimSpace(lines.Text()); {
		case line == "000":
			a.failed++
		case len(line) == 3:
			a.answered++
		}
	}
	return a
}

// Recover takes the clients away.
func (f *hostile) Recover(ctx context.Context, e *Env) error {
	if len(f.made) == 0 {
		return nil
	}
	if !f.claimed {
		err := e.Client.CoreV1().Namespaces().Delete(ctx, f.Namespace, metav1.DeleteOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		f.made = nil
	}
	for _, d := range f.made {
		err := e.Client.AppsV1().Deployments(f.Namespace).Delete(ctx, d.Name, metav1.DeleteOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	f.made = nil
	return nil
}

var _ Spaced = (*hostile)(nil)

// Namespaces implements Spaced.
func (f *hostile) Namespaces() []string { return []string{f.Namespace} }

// pick is a list in an order that is drawn, for a purpose.
func (e *Env) pick(purpose string, list []string) []string {
	list = slices.Clone(list)
	e.random(purpose).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
