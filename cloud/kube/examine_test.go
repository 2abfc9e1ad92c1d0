package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

// A small application.
const shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 3
  template:
    spec:
      initContainers: [{name: first, image: busybox, imagePullPolicy: IfNotPresent, resources: {requests: {cpu: 600m}}}]
      containers:
      - {name: front, image: "aiopslab/shop:v1", resources: {requests: {cpu: 500m, memory: 256Mi}}}
      - {name: side, image: redis:7, resources: {limits: {cpu: 50m, memory: 64Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 2
  template: {spec: {containers: [{name: store, image: mongo:4.4.6}]}}
  volumeClaimTemplates:
  - spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {template: {spec: {containers: [{name: agent, image: redis:7, resources: {requests: {cpu: 100m}}}]}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: files}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: front}
`

func shopNeed(t *testing.T) Need {
	t.Helper()
	objects, err := manifest.Parse([]byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	return Need{Objects: objects, Namespaces: []string{"shop"}, Images: []string{"redis:7"}}
}

// meshGroup is where the resources of Chaos Mesh are listed, by their version.
const meshGroup = "/apis/chaos-mesh.org"

// healthy is a cluster that has what the shop needs, by the collection that an object is in.
var healthy = map[string][]string{
	"/api/v1/nodes": {node("one", 2, "4Gi"), node("two", 2, "4Gi")},
	"/api/v1/namespaces": {
		`{metadata: {name: default}}`, `{metadata: {name: kube-system}}`, `{metadata: {name: local-path-storage}}`,
	},
	"/api/v1/namespaces/kube-system/pods": {
		`{metadata: {name: calico-node-x7, namespace: kube-system}, spec: {nodeName: one, containers: [{name: c,
			resources: {requests: {cpu: 250m}}}]}, status: {phase: Running}}`,
	},
	"/api/v1/namespaces/local-path-storage/pods": {
		`{metadata: {name: p, namespace: local-path-storage}, spec: {nodeName: two, containers: [{name: c}]}}`,
	},
	"/api/v1/namespaces/default/pods": {
		`{metadata: {name: done, namespace: default}, spec: {nodeName: two, containers: [{name: c,
			resources: {requests: {cpu: 1900m}}}]}, status: {phase: Succeeded}}`,
	},
	"/apis/storage.k8s.io/v1/storageclasses": {
		`{metadata: {name: slow}}`,
		`{metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}`,
	},
	"/apis/metrics.k8s.io/v1beta1/nodes": {},
	meshGroup: {
		`{apiVersion: v1, kind: APIResourceList, groupVersion: chaos-mesh.org/v1alpha1, metadata: {name: v1alpha1},
			resources: [{name: podchaos, kind: PodChaos}, {name: networkchaos, kind: NetworkChaos}, {name: schedules, kind: Schedule}]}`,
	},
	"/api/v1/namespaces/chaos-mesh/pods": {
		`{metadata: {name: chaos, namespace: chaos-mesh, labels: {app.kubernetes.io/component: controller-manager,
			app.kubernetes.io/part-of: chaos-mesh}}, spec: {containers: [{name: c}]}, status: {phase: Running}}`,
	},
}

func node(name string, cpus int, memory string) string {
	return fmt.Sprintf(`{metadata: {name: %s}, status: {allocatable: {cpu: %d, memory: %s, pods: 10}, conditions:
		[{type: Ready, status: "True"}], images: [{names: ["docker.io/aiopslab/shop:v1"]},
		{names: ["docker.io/library/redis@sha256:%064d", "docker.io/library/redis:7"]},
		{names: ["docker.io/library/mongo:4.4.6"]}, {names: ["docker.io/library/busybox:latest"]}]}}`, name, cpus, memory, 1)
}

// place is a cluster as it is for a test.
type place struct {
	server  *apiServer
	cloud   *Cloud
	mayNot  []string       // "delete namespaces"
	refused map[string]int // statuses, by path
}

func newPlace(t *testing.T) *place {
	t.Helper()
	s, c := newServer(t)
	p := &place{server: s, cloud: c, refused: map[string]int{}}
	c.Context, c.cluster, c.Version.GitVersion = "kind-lab", "kind-lab", "v1.34.1+k3s1"
	for in, list := range healthy {
		for _, text := range list {
			p.put(t, in, text)
		}
	}
	s.before = p.answer
	return p
}

func (p *place) put(t *testing.T, in, text string) {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &o); err != nil {
		t.Fatal(err)
	}
	p.server.add(t, in, o)
}

// clear removes what is in a collection.
func (p *place) clear(in string) {
	for _, at := range p.server.paths() {
		if collection(at) == in {
			delete(p.server.objects, at)
		}
	}
}

// answer does what no store of objects can.
func (p *place) answer(w http.ResponseWriter, r *http.Request) bool {
	if code := p.refused[r.URL.Path]; code > 0 {
		refuse(w, int32(code), "Refused")
		return true
	}
	if !strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews") {
		return false
	}
	var review authorizationv1.SelfSubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	a := review.Spec.ResourceAttributes
	review.Status.Allowed = !slices.Contains(p.mayNot, strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/"))
	reply(w, http.StatusCreated, review)
	return true
}

func TestExamine(t *testing.T) {
	p := newPlace(t)
	var got []string
	for _, f := range p.cloud.Examine(t.Context(), shopNeed(t)) {
		if f.Level != OK || f.Do != "" {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Check+": "+f.Text)
	}
	want := []string{
		"version: Kubernetes v1.34.1+k3s1",
		"rights: you may do all that a run needs",
		"name: context kind-lab, cluster kind-lab at http://cluster.test",
		"workloads: nobody else runs anything here",
		"namespaces: shop can be made",
		"remains: no dead run has left anything behind",
		"capacity: 5 pods request 1.8 CPUs and 960Mi of memory, and 3.7 CPUs and 8Gi of memory are free on 2 nodes",
		"storage: 3 claims for volumes, which storage class standard provisions",
		"images: all nodes have the 4 images",
		"metrics: the metrics API answers",
		"network-policy: a guess from pod calico-node-x7: Calico enforces NetworkPolicies",
		"chaos-mesh: Chaos Mesh is installed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for _, w := range p.server.writes {
		t.Errorf("an examination writes: %s", w)
	}
}

func TestExamineFinds(t *testing.T) {
	const (
		classes = "/apis/storage.k8s.io/v1/storageclasses"
		nodes   = "/api/v1/nodes"
	)
	volume := func(name, size, more string) string {
		return fmt.Sprintf(`{metadata: {name: %s}, spec: {capacity: {storage: %s}, accessModes: [ReadWriteOnce]%s},
			status: {phase: Available}}`, name, size, more)
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, p *place)
		want   string // check, level and a part of the text and of what to do
	}{
		"old": {func(_ *testing.T, p *place) { p.cloud.Version.GitVersion = "v1.24.9" }, "version problem Kubernetes v1.24.9 is older than 1.30: Choose"},
		"new": {func(_ *testing.T, p *place) { p.cloud.Version.GitVersion = "v1.99.0" }, "version warning Kubernetes v1.99.0 is newer"},
		"odd": {func(_ *testing.T, p *place) { p.cloud.Version.GitVersion = "?" }, `version warning "?" is no version that the lab knows`},
		"no rights": {
			func(_ *testing.T, p *place) { p.mayNot = []string{"impersonate users", "create pods/exec"} },
			"rights problem you may not create pods/exec, impersonate users: Ask for",
		},
		"no right to find what is to be removed": {
			func(_ *testing.T, p *place) { p.mayNot = []string{"list apiservices"} },
			"rights problem you may not list apiservices: Ask for",
		},
		"few rights": {
			func(_ *testing.T, p *place) { p.mayNot = []string{"patch nodes"} },
			"rights warning you may not patch nodes: some problems need it",
		},
		"unknown rights": {func(_ *testing.T, p *place) {
			p.refused["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = 403
		}, "rights warning what you may do is not known"},
		"context": {func(_ *testing.T, p *place) { p.cloud.Context = "eu-prod" }, "name warning the context is called eu-prod, which looks like production: Choose"},
		"server":  {func(_ *testing.T, p *place) { p.cloud.config.Host = "https://api.live.example.com" }, "name warning the server is called"},
		"others": {
			func(t *testing.T, p *place) {
				p.put(t, spaces, `{metadata: {name: bank}}`)
				p.put(t, spaces+"/bank/pods", `{metadata: {name: db, namespace: bank}, spec: {containers: [{name: c}]}}`)
				p.put(t, spaces+"/default/pods", `{metadata: {name: x, namespace: default}, spec: {containers: [{name: c}]}}`)
			}, "workloads warning others run 2 pods in bank, default: Faults",
		},
		"not to be listed": {func(_ *testing.T, p *place) { p.refused["/api/v1/pods"] = 403 }, "workloads warning whether others run anything here is not known"},
		"no pods":          {func(_ *testing.T, p *place) { p.refused["/api/v1/pods"] = 403 }, "pods problem they cannot be listed"},
		"their namespace": {
			func(t *testing.T, p *place) { p.put(t, spaces, `{metadata: {name: shop}}`) },
			"namespaces warning namespace shop exists already, and the lab did not make it: A run takes",
		},
		"our namespace": {func(t *testing.T, p *place) {
			a := claim(t, p.cloud, "r1", "shop")
			t.Cleanup(a.die)
		}, "namespaces warning namespace shop is in use (run r1, since "},
		"remains":    {func(t *testing.T, p *place) { p.server.add(t, roles, thing("left", "r0")) }, "remains warning dead runs have left something behind: r0: Run 'aiopslab cleanup'."},
		"no nodes":   {func(_ *testing.T, p *place) { p.clear(nodes) }, "capacity problem none of 0 nodes takes pods"},
		"small":      {func(t *testing.T, p *place) { p.clear(nodes); p.put(t, nodes, node("one", 1, "4Gi")) }, "capacity problem 2 of 5 pods would be pending: together they request 1.8 CPUs and 960Mi of memory, and 0.7 CPUs and 4Gi of memory are free on 1 node: Make room"},
		"no memory":  {func(t *testing.T, p *place) { p.clear(nodes); p.put(t, nodes, node("one", 8, "700Mi")) }, "capacity problem 1 of 5 pods"},
		"no default": {func(_ *testing.T, p *place) { delete(p.server.objects, classes+"/standard") }, "storage problem no storage class is the default, and 3 of 3 claims for volumes would be pending: Make a class the default: kubectl annotate storageclass slow storageclass.kubernetes.io/is-default-class=true"},
		"no class":   {func(_ *testing.T, p *place) { p.clear(classes) }, "storage problem no storage class is the default, and 3 of 3 claims for volumes would be pending: Install"},
		"volumes": {func(t *testing.T, p *place) {
			p.clear(classes)
			for i, size := range []string{"1Gi", "5Gi", "2Gi"} {
				p.put(t, pvs, volume(fmt.Sprint("v", i), size, ""))
			}
		}, "storage ok 3 claims for volumes, and there are volumes without a class for all"},
		"few volumes": {func(t *testing.T, p *place) {
			p.clear(classes)
			p.put(t, pvs, volume("a", "1Gi", ""))
			p.put(t, pvs, volume("b", "2Gi", ", storageClassName: slow"))
			p.put(t, pvs, volume("c", "2Gi", ", claimRef: {name: x}"))
			p.put(t, pvs, volume("d", "9Gi", ""))
		}, "storage problem no storage class is the default, and 1 of 3 claims"},
		"images": {func(t *testing.T, p *place) {
			p.put(t, nodes, `{metadata: {name: bare}, status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}]}}`)
		}, "images warning some node lacks 4 of 4 images, and whether it can pull them is not known: aiopslab/shop:v1, busybox, mongo:4.4.6, redis:7: Load"},
		"many images": {func(t *testing.T, p *place) {
			p.put(t, nodes, `{metadata: {name: full}, status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}],
				images: [`+strings.Repeat(`{names: [a]},`, listedImages-1)+`{names: ["aiopslab/shop:v1"]}]}}`)
		}, "images warning some node does not list 3 of 4 images, and lists no more than 50, by 5 names each: busybox"},
		"many names": {func(t *testing.T, p *place) {
			p.put(t, nodes, `{metadata: {name: full}, status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}],
				images: [{names: ["aiopslab/shop:v1", "a:1", "a:2", "a:3", "a:4"]}]}}`)
		}, "images warning some node does not list 3 of 4 images, and lists no more than 50, by 5 names each: busybox"},
		"cordoned": {func(t *testing.T, p *place) {
			p.put(t, nodes, `{metadata: {name: c}, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "True"}]}}`)
			p.put(t, nodes, `{metadata: {name: t}, spec: {taints: [{key: k, effect: NoSchedule}]}, status: {conditions: [{type: Ready, status: "True"}]}}`)
			p.put(t, nodes, `{metadata: {name: d}}`)
		}, "images ok all nodes have"},
		"no metrics":  {func(_ *testing.T, p *place) { p.refused["/apis/metrics.k8s.io/v1beta1/nodes"] = 404 }, "metrics warning there is no metrics API"},
		"bad metrics": {func(_ *testing.T, p *place) { p.refused["/apis/metrics.k8s.io/v1beta1/nodes"] = 503 }, "metrics warning the metrics API does not answer"},
		"flannel": {func(t *testing.T, p *place) {
			p.clear("/api/v1/pods")
			p.put(t, spaces+"/kube-system/pods", `{metadata: {name: kube-flannel-ds-1, namespace: kube-system}, spec: {containers: [{name: c}]}}`)
		}, "network-policy warning a guess from pod kube-flannel-ds-1: Flannel does not"},
		"no plug-in":        {func(_ *testing.T, p *place) { p.clear("/api/v1/pods") }, "network-policy warning whether NetworkPolicies are enforced is not known"},
		"no chaos":          {func(_ *testing.T, p *place) { p.clear(meshGroup) }, "chaos-mesh warning Chaos Mesh is not installed"},
		"chaos not for you": {func(_ *testing.T, p *place) { p.mayNot = []string{"create networkchaos"} }, "chaos-mesh warning Chaos Mesh is installed, but you may not create networkchaos"},
		"chaos not known":   {func(_ *testing.T, p *place) { p.refused[meshGroup+"/v1alpha1"] = 403 }, "chaos-mesh warning whether Chaos Mesh is installed is not known"},
		"old chaos": {func(t *testing.T, p *place) {
			p.clear(meshGroup)
			p.put(t, meshGroup, `{apiVersion: v1, kind: APIResourceList, groupVersion: chaos-mesh.org/v1alpha1, metadata: {name: v1alpha1}, resources: [{name: podchaos}]}`)
		}, "chaos-mesh warning Chaos Mesh is older than version 2"},
		"no controller": {func(_ *testing.T, p *place) { p.clear("/api/v1/pods") }, "chaos-mesh warning Chaos Mesh's definitions are there"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			test.change(t, p)
			var got []string
			for _, f := range p.cloud.Examine(t.Context(), shopNeed(t)) {
				line := fmt.Sprintf("%s %s %s: %s", f.Check, f.Level, f.Text, f.Do)
				if strings.ContainsAny(line, "\n\t") {
					t.Errorf("more than a line: %q", line)
				}
				got = append(got, line)
			}
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, test.want) }) {
				t.Errorf("no %q in:\n%s", test.want, strings.Join(got, "\n"))
			}
		})
	}
}

// TestPulledAnew shows that images are told which are pulled each time, whoever runs them and whatever else is missing.
func TestPulledAnew(t *testing.T) {
	const all, anew = "all nodes have the 1 image", "all nodes have the 1 image; pulled anew for each container: "
	for container, want := range map[string]string{
		`image: "redis:7", imagePullPolicy: Always`:       anew + "redis:7",
		`image: "redis:7", imagePullPolicy: IfNotPresent`: all,
		`image: busybox`:                         anew + "busybox",
		`image: "busybox:latest"`:                anew + "busybox:latest",
		`image: busybox, imagePullPolicy: Never`: all,
		`image: "mongo:4.4.6"`:                   all,
		`image: absent`: "some node lacks 1 of 1 image, and whether it can pull them is not known: absent; " +
			"pulled anew for each container: absent",
	} {
		objects, err := manifest.Parse([]byte(
			"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, " + container + "}]}}"))
		if err != nil {
			t.Fatal(err)
		}
		for where, need := range map[string]Need{
			"applied": {Objects: objects}, "of an application": {Apps: []App{{Name: "a", Objects: objects}}},
		} {
			findings := newPlace(t).cloud.Examine(t.Context(), need)
			i := slices.IndexFunc(findings, func(f Finding) bool { return f.Check == "images" })
			if i < 0 || findings[i].Text != want || (findings[i].Level == OK) != (want == all) ||
				strings.Contains(findings[i].Do, "IfNotPresent") != strings.Contains(want, "anew") {
				t.Errorf("%s, %s: %v", where, container, findings)
			}
		}
	}
}

func TestLooksProductive(t *testing.T) {
	for name, want := range map[string]bool{
		"prod": true, "eu-prod-1": true, "prod1": true, "PROD": true, "gke_acme_europe_production": true, "myProdCluster": true,
		"arn:aws:eks:eu-west-1:123:cluster/live": true, "https://api.prd.example.com:6443": true, "pre-prod": true,
		"product-team": false, "olive": false, "delivery": false, "kind-lab": false, "reproduction": false, "alive": false,
		"non-prod": false, "nonprod": false, "https://127.0.0.1:6443": false, "": false, "prod-nonprod": true,
	} {
		if looksProductive(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestProduction(t *testing.T) {
	p := newPlace(t)
	if got := Production(p.cloud.Examine(t.Context(), Need{})); len(got) > 0 {
		t.Errorf("a cluster for tests: %v", got)
	}
	p.cloud.Context = "live"
	p.mayNot = []string{"create namespaces"}
	all := p.cloud.Examine(t.Context(), Need{})
	if got := Production(all); len(got) != 1 || got[0].Check != "name" {
		t.Errorf("production: %v", got)
	}
	if got := Problems(all); len(got) != 1 || got[0].Check != "rights" {
		t.Errorf("problems: %v", got)
	}
}

func TestRequests(t *testing.T) {
	for text, want := range map[string]amount{
		`{containers: [{name: a}]}`: {},
		`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Ki}, requests: {cpu: 200m}}}]}`:                                                                        {200, 1024},
		`{initContainers: [{name: i, resources: {requests: {cpu: 2}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`:                                            {2000, 0},
		`{initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 2}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}], overhead: {cpu: 1}}`: {4000, 0},
	} {
		var spec v1.PodSpec
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		if got := requests(&spec); got != want {
			t.Errorf("%s requests %v, not %v", text, got, want)
		}
	}
}
