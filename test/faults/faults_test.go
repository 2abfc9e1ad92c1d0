package faults

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/workload"
)

// trial is a fault that is injected, and set right by the reference solution if it has one, or else
// by its recovery.
type trial struct {
	kind, target, params string
	recover              bool // by its recovery, though it has a solution
	// wrong are commands that look like a solution and are none, and what they are. Part is whether they are tried
	// without -wrong.
	wrong, what string
	part        bool
}

var allWrong = flag.Bool("wrong", false, "try all commands that look like a solution and are none, not a part of them")

// The trials of a group are made at once: they do not disturb each other.

var hotelTrials = [][]trial{
	{
		{kind: "noop"},
		{kind: "misconfig_k8s", target: "mongodb-user"},
		{kind: "scale_pods_to_zero", target: "recommendation"},
		{kind: "assign_to_non_existent_node", target: "reservation"},
		{kind: "wrong_bin_usage", target: "profile", params: "{binary: geo}"},
		{kind: "misconfig_app", target: "geo"},
		{kind: "revoke_auth", target: "mongodb-rate"},
	},
	{
		{kind: "revoke_auth", target: "mongodb-geo", recover: true},
		{kind: "storage_user_unregistered", target: "mongodb-rate"},
		{kind: "container_kill", target: "search", params: "{containers: [hotel-reserv-search]}"},
		{kind: "pod_failure", target: "user"},
		{kind: "pod_kill", target: "recommendation"},
		{kind: "network_loss", target: "profile"},
		{kind: "network_jitter", target: "mongodb-reservation"},
		{kind: "network_corrupt", target: "memcached-profile"},
		{kind: "network_duplicate", target: "consul"},
	},
	{
		{kind: "storage_user_unregistered", target: "mongodb-geo", recover: true},
		{kind: "network_delay", target: "user"},
		{kind: "network_delay", target: "recommendation", params: "{delay: 2s, every: 6s, for: 3s}"},
		{kind: "network_bandwidth", target: "profile"},
		{kind: "network_partition", target: "rate"},
		{kind: "cpu_stress", target: "search"},
		{kind: "memory_stress", target: "reservation"},
		{kind: "memory_stress", target: "memcached-profile", params: "{ramp: 5s}"},
		{kind: "disk_woreout", target: "mongodb-recommendation"},
	},
	{
		{kind: "network_loss", target: "profile", params: "{loss: 0.9, node: true}"},
		{kind: "network_delay", target: "search", params: "{delay: 2s, node: true}"},
	},
	{{kind: "kernel_fault", target: "user"}},
	{{kind: "redeploy_without_pv"}},
	{{kind: "redeploy_without_pv", target: "mongodb-rate", recover: true}},
}

var socialTrials = [][]trial{
	{
		{kind: "misconfig_k8s", target: "user-service", recover: true},
		{kind: "scale_pods_to_zero", target: "text-service", recover: true},
		{kind: "assign_to_non_existent_node", target: "media-service", recover: true},
		{kind: "wrong_bin_usage", target: "unique-id-service", params: "{binary: nginx-thrift}", recover: true},
		{kind: "auth_miss_mongodb", target: "url-shorten-mongodb"},
		{kind: "network_delay", target: "post-storage-service", params: "{delay: 1s}"},
		{kind: "network_loss", target: "social-graph-redis"},
	},
	{{kind: "auth_miss_mongodb", target: "url-shorten-mongodb", recover: true}},
	{{kind: "kernel_fault", target: "post-storage-service"}}, // It shows by the load.
}

var astronomyTrials = [][]trial{
	{
		{kind: "feature_flag", target: "payment", params: `{flag: paymentFailure, variant: "100%"}`},
	},
	{
		{kind: "feature_flag", target: "kafka", recover: true},
	},
	{{kind: "feature_flag", target: "ad", params: "{flag: adHighCpu}"}},
}

// tidbTrials are made one by one: all change the same object.
var tidbTrials = [][]trial{
	{{kind: "overload_replicas", target: "basic-tidb"}},
	{{kind: "non_existent_storage", target: "basic-pd"}},
	{{kind: "invalid_affinity_toleration", target: "basic-tidb"}},
	{{kind: "security_context_fault", target: "basic-tidb"}},
	{{kind: "wrong_update_strategy", target: "basic-tidb", recover: true}},
}

var flowerTrials = [][]trial{
	{
		{kind: "model_misconfig", target: "clientapp-1"},
		{kind: "scale_pods_to_zero", target: "supernode-2"},
	},
	{{kind: "model_misconfig", target: "clientapp-2", recover: true}},
}

var flightTrials = [][]trial{
	{{kind: "wrong_store_address", target: "get-order-by-id"}},
	{{kind: "missing_rights", target: "owdev-controller"}},
	{{
		kind: "missing_rights", target: "owdev-controller", what: "all rights", part: true,
		wrong: "kubectl create clusterrolebinding all --clusterrole=cluster-admin " +
			"--serviceaccount=$(kubectl get deployment owdev-controller -o jsonpath='{.metadata.namespace}'):owdev-controller && " +
			"kubectl rollout restart deployment/owdev-controller && kubectl rollout status deployment/owdev-controller --timeout=60s",
	}},
}

var trainTrials = [][]trial{
	{
		{kind: "misconfig_k8s", target: "rabbitmq", params: "{port: 5673, instead_of: 5672}"},
		{kind: "scale_pods_to_zero", target: "ts-price-service"},
		{kind: "wrong_bin_usage", target: "ts-station-service", params: "{binary: ts-route-service}"},
		{kind: "storage_user_unregistered", target: "ts-order-mongo"},
		{kind: "network_delay", target: "ts-inside-payment-service"},
		{kind: "network_loss", target: "ts-notification-service", params: "{loss: 0.9, node: true}"},
	},
	{{kind: "storage_user_unregistered", target: "ts-order-mongo", recover: true}},
}

// asRoot runs a statement in catalogue-db.
func asRoot(statement string) string {
	return `kubectl exec deployment/catalogue-db -- mysql -u root -pfake_password -e "` + statement + `"`
}

const (
	anotherSecret    = `kubectl patch secret catalogue-db -p '{"stringData": {"password": "another"}}'`
	restartCatalogue = "kubectl rollout restart deployment/catalogue && kubectl rollout status deployment/catalogue --timeout=60s"
	// loudest is the hostile client.
	loudest = `$(for d in $(kubectl get deployment -n partners -o name | cut -d/ -f2); do ` +
		`echo $(kubectl logs deployment/$d -n partners --since=10s | wc -l) $d; done | sort -n | tail -n 1 | cut -d' ' -f2)`
)

// policy is a NetworkPolicy for front-end, or for all in another namespace.
func policy(namespace, spec string) string {
	return "kubectl apply -n " + namespace + ` -f - <<END
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: block}, spec: {` + spec + `}}
END`
}

var sockTrials = [][]trial{
	{{kind: "leaked_credential", target: "catalogue-db"}},
	{{kind: "leaked_credential", target: "catalogue-db", recover: true}},
	{{kind: "leaked_credential", target: "catalogue-db", what: "only the Secret", wrong: anotherSecret}},
	{{
		kind: "leaked_credential", target: "catalogue-db", what: "only the store",
		wrong: asRoot("ALTER USER 'catalogue_user' IDENTIFIED BY 'another'"),
	}},
	{{
		kind: "leaked_credential", target: "catalogue-db", what: "both are good", part: true,
		wrong: asRoot("CREATE USER 'more' IDENTIFIED BY 'another'") + ` && kubectl patch secret catalogue-db -p ` +
			`'{"stringData": {"username": "more", "password": "another"}}' && ` + restartCatalogue,
	}},
	{{
		kind: "leaked_credential", target: "catalogue-db", what: "catalogue is not restarted",
		wrong: asRoot("ALTER USER 'catalogue_user' IDENTIFIED BY 'another'") + " && " + anotherSecret,
	}},
	{{
		kind: "leaked_credential", target: "catalogue-db", what: "all is restarted",
		wrong: "kubectl rollout restart deployment/catalogue-db && " +
			"kubectl rollout status deployment/catalogue-db --timeout=60s && " + restartCatalogue,
	}},
	{{
		kind: "leaked_credential", target: "catalogue-db", what: "nobody gets to the store",
		wrong: policy("sock-shop", "podSelector: {matchLabels: {name: catalogue-db}}, ingress: [{from: [{podSelector: {matchLabels: {name: catalogue}}}]}]") +
			"\n" + anotherSecret,
	}},

	{{kind: "hostile_client", target: "front-end", params: "{path: /catalogue}"}},
	{{kind: "hostile_client", target: "front-end", params: "{path: /catalogue}", recover: true}},
	{{
		kind: "hostile_client", target: "front-end", what: "everybody is shut out",
		wrong: policy("sock-shop", "podSelector: {matchLabels: {name: front-end}}, policyTypes: [Ingress]"),
	}},
	{{
		kind: "hostile_client", target: "front-end", what: "all of the namespace is shut out",
		wrong: policy("sock-shop", "podSelector: {matchLabels: {name: front-end}}, ingress: [{from: [{namespaceSelector: "+
			"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [partners]}]}}]}]"),
	}},
	{{
		kind: "hostile_client", target: "front-end", what: "a policy where it is not ours",
		wrong: policy("partners", "podSelector: {matchLabels: {app: "+loudest+"}}, policyTypes: [Egress]"),
	}},
	{{
		kind: "hostile_client", target: "front-end", what: "its address is shut out", part: true,
		wrong: "at=$(kubectl get pod -n partners -l app=" + loudest + " -o jsonpath='{.items[0].status.podIP}')\n" +
			policy("sock-shop", "podSelector: {matchLabels: {name: front-end}}, ingress: [{from: [{ipBlock: "+
				"{cidr: 0.0.0.0/0, except: [$at/32]}}]}]"),
	}},
	{{kind: "hostile_client", target: "front-end", what: "it is scaled away", wrong: "kubectl scale deployment/" + loudest + " --replicas=0 -n partners"}},
	{{kind: "hostile_client", target: "front-end", what: "it is deleted", wrong: "kubectl delete deployment " + loudest + " -n partners"}},
	{{kind: "hostile_client", target: "front-end", what: "more pods", wrong: "kubectl scale deployment/front-end deployment/catalogue --replicas=4"}},
	{{kind: "hostile_client", target: "front-end", what: "no pods", wrong: "kubectl scale deployment/front-end --replicas=0"}},
}

func TestSockShop(t *testing.T) { run(t, sockshop.App(), sockTrials) }

func TestHotelReservation(t *testing.T) { run(t, hotel.App(), hotelTrials) }

func TestSocialNetwork(t *testing.T) { run(t, social.App(), socialTrials) }

func TestAstronomyShop(t *testing.T) { run(t, astronomy.App(), astronomyTrials) }

func TestTiDBCluster(t *testing.T) { run(t, tidb.App(), tidbTrials) }

func TestFlower(t *testing.T) { run(t, flower.App(), flowerTrials) }

func TestFlightTicket(t *testing.T) { run(t, flightticket.App(), flightTrials) }

func TestTrainTicket(t *testing.T) { run(t, trainticket.App(), trainTrials) }

// TestEveryKindIsTried sees to it that a new kind gets a trial.
func TestEveryKindIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, group := range slices.Concat(hotelTrials, socialTrials, astronomyTrials, tidbTrials, flowerTrials,
		flightTrials, trainTrials, sockTrials) {
		for _, tt := range group {
			tried[tt.kind] = true
		}
	}
	for _, k := range fault.Kinds() {
		if !tried[k.Name] {
			t.Errorf("no trial of %s", k.Name)
		}
	}
}

func run(t *testing.T, a *app.App, groups [][]trial) {
	deployed := deploy(t, a)
	for _, group := range groups {
		if group[0].wrong != "" && !group[0].part && !*allWrong {
			continue
		}
		t.Run(strings.TrimSpace(group[0].kind+" "+group[0].what), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := lab.Cloud.Reset(ctx, deployed); err != nil {
				t.Fatal(err)
			}
			e := &fault.Env{
				Client: lab.Client, Config: lab.Cloud.RESTConfig(), Dial: lab.Cloud.Dial, Chaos: cloud.Chaos(lab.Cloud), App: a, Load: load(t, a),
			}
			var all sync.WaitGroup
			for _, tt := range group {
				all.Go(func() { t.Run(tt.name(), func(t *testing.T) { tt.run(t, e) }) })
			}
			all.Wait()
		})
	}
}

func (tt trial) name() string {
	return strings.ReplaceAll(strings.TrimSpace(tt.kind+" "+tt.target+" "+tt.params), " ", "_")
}

// run makes the trial in an application that is well.
func (tt trial) run(t *testing.T, e *fault.Env) {
	k, err := fault.Find(fault.Kinds(), tt.kind)
	if err != nil {
		t.Fatal(err)
	}
	target, params := fault.Target{App: e.App, Service: tt.target}, &yaml.Node{}
	if err := yaml.Unmarshal([]byte(tt.params), params); err != nil {
		t.Fatal(err)
	}
	f, err := k.New(target, params)
	if err != nil {
		t.Fatal(err)
	}
	solution, err := k.Fix(target, params)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	x := &experiment{t, e, f}
	if tt.wrong == "" { // What that leaves may be in the way, and the cluster is reset in any case.
		defer x.recover()
	}
	x.await("the application to be well", func(symptom string) bool { return symptom == "" })
	start := time.Now()
	if err := f.Inject(ctx, e); err != nil {
		t.Fatal(err)
	}
	if tt.kind == "noop" {
		return
	}
	injected := time.Since(start)
	symptom := x.await("the fault to show", func(symptom string) bool { return symptom != "" })
	shown := time.Since(start)
	x.stays(symptom)
	if tt.wrong != "" {
		x.solve([]string{tt.wrong})
		x.lasts()
		return
	}
	start = time.Now()
	if solution == nil || tt.recover {
		x.recover()
	} else {
		x.solve(solution)
	}
	x.await("the fault to be gone", func(symptom string) bool { return symptom == "" })
	t.Logf("injected in %.1fs, shown after %.1fs, gone after %.1fs: %s", injected.Seconds(), shown.Seconds(), time.Since(start).Seconds(), symptom)
}

// deploy brings an application up in an empty cluster, and records it.
func deploy(t *testing.T, a *app.App) cloud.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := lab.Cloud.Reset(ctx, empty); err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply.Apply(ctx, a.Namespace, objects); err != nil {
		t.Fatal(err)
	}
	if err := lab.Apply.WaitReady(ctx, a.Namespace, objects); err != nil {
		t.Fatal(err)
	}
	s, err := lab.Cloud.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// load sends the application's mix of requests until the test ends, and returns what tells how its
// users fare.
func load(t *testing.T, a *app.App) func(context.Context) (*workload.Snapshot, error) {
	t.Helper()
	mix, err := workload.FindMix(a.Mixes, a.Mix)
	if err != nil {
		t.Fatal(err)
	}
	g, err := workload.New(workload.Spec{
		Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Constant(20)},
	}, workload.Target{BaseURL: "http://" + a.Host(), DialContext: lab.Cloud.Dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Run(ctx) // It ends by cancel alone.
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func(context.Context) (*workload.Snapshot, error) { return g.Snapshot(), nil }
}

// experiment is a fault in an application.
type experiment struct {
	t *testing.T
	e *fault.Env
	f fault.Fault
}

// await looks until the symptom is as wanted, and returns it.
func (x *experiment) await(what string, wanted func(symptom string) bool) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	for {
		symptom, err := x.f.Manifest(ctx, x.e)
		if err == nil && wanted(symptom) {
			return symptom
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			x.t.Fatalf("gave up waiting for %s: %q, %v", what, symptom, err)
		}
	}
}

// stays looks a few times more: a fault that shows does not stop doing so.
func (x *experiment) stays(shown string) {
	x.t.Helper()
	const looks = 6
	for i := range looks {
		symptom, err := x.f.Manifest(x.t.Context(), x.e)
		if err != nil || symptom == "" {
			x.t.Fatalf("look %d: the fault does not show any more: %v; it had shown as: %s", i, err, shown)
		}
		select {
		case <-time.After(poll):
		case <-x.t.Context().Done():
		}
	}
}

// lasts looks until the fault has shown for as long as a goal must be met. It must never have been gone for that long.
func (x *experiment) lasts() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	since, gone := time.Now(), false
	for {
		symptom, err := x.f.Manifest(ctx, x.e)
		switch {
		case err != nil && ctx.Err() == nil:
		case err != nil:
			x.t.Fatalf("the fault comes and goes: %v", err)
		case gone != (symptom == ""):
			since, gone = time.Now(), symptom == ""
		case time.Since(since) < grade.GoalHold:
		case gone:
			x.t.Fatal("that has mended it")
		default:
			x.t.Log(symptom)
			return
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
		}
	}
}

func (x *experiment) recover() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := x.f.Recover(ctx, x.e); err != nil {
		x.t.Errorf("recover: %v", err)
	}
}

// solve runs commands in a shell with kubectl.
func (x *experiment) solve(commands []string) {
	x.t.Helper()
	config := filepath.Join(x.t.TempDir(), "kubeconfig")
	b, err := lab.Cloud.Kubeconfig("lab")
	if err == nil {
		err = os.WriteFile(config, b, 0o600)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	commands = append([]string{"kubectl config set-context --current --namespace=" + x.e.App.Namespace}, commands...)
	for _, c := range commands {
		cmd := exec.CommandContext(x.t.Context(), "bash", "-c", c)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "PATH="+lab.Bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			x.t.Errorf("%s: %v", c, err)
		} else if err != nil {
			x.t.Fatal(err)
		}
		x.t.Logf("$ %s\n%s", c, out)
	}
}
