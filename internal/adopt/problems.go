package adopt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// writeProblems writes a document for each fault that fits a workload that users reach, and returns their ids.
func (y *system) writeProblems(o Options, l *problem.Library, a *app.App, dir string) (ids []string, err error) {
	for _, name := range o.Kinds {
		if _, err := fault.Find(l.Kinds, name); err != nil {
			return nil, fmt.Errorf("--faults: %w", err)
		}
	}
	for _, k := range l.Kinds {
		if k.Name == "noop" || len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.Name) {
			continue
		}
		for _, target := range k.Targets(a) {
			w := y.workload(target)
			if w == nil || !w.reached {
				continue
			}
			params, ok := w.params(k)
			if !ok {
				continue
			}
			doc, id, err := w.document(o, k, a, params)
			if err != nil {
				return nil, err
			}
			file := k.Name + "-" + target + ".yaml"
			if _, err := l.Parse(file, doc); err != nil {
				continue // The fault does not fit what the workload is like.
			}
			if err := os.WriteFile(filepath.Join(dir, file), doc, 0o644); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("no fault fits what requests of users reach")
	}
	return ids, nil
}

func (y *system) workload(name string) *part {
	for _, w := range y.workloads {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// wrongPorts are ports that nobody listens on, most likely.
var wrongPorts = []int32{9999, 9998, 9997}

// params are the parameters of a fault in the workload, and false if it would not show there.
func (w *part) params(k *fault.Kind) (map[string]any, bool) {
	limits := w.template.Spec.Containers[0].Resources.Limits
	if k.TrueFixes[fault.RollBackEverything] != "" && !w.replaced() {
		return nil, false
	}
	switch k.Name {
	case "misconfig_k8s":
		if w.port == 0 || w.headless { // Nobody asks it, or by other ways, so nobody would see that it is not reached.
			return nil, false
		}
		for _, port := range wrongPorts {
			if !w.listens(port) {
				return map[string]any{"port": port}, true
			}
		}
		return nil, false
	case "network_delay":
		return w.onNode(map[string]any{"delay": "2s"}), w.port != 0
	case "network_loss":
		return w.onNode(map[string]any{"loss": 0.9}), w.port != 0
	case "network_bandwidth": // It shows in long answers: metrics.
		return nil, w.port != 0 && w.template.Annotations["prometheus.io/scrape"] == "true"
	case "memory_stress":
		limit := limits.Memory()
		if limit.IsZero() {
			return nil, false
		}
		held := resource.NewQuantity(max(2*limit.Value(), 256<<20), resource.BinarySI)
		return map[string]any{"memory": held.String()}, true
	case "hostile_client": // How much is too much for it is not known.
		return nil, false
	case "cpu_stress": // It is seen by the time that gRPC's health check takes.
		return nil, w.ask != nil && w.ask.GRPC != "" && !limits.Cpu().IsZero()
	}
	if strings.HasPrefix(k.Name, "network_") {
		return nil, w.port != 0
	}
	return nil, true
}

// replaced reports whether all pods are made anew when the template changes, however bad it is. A StatefulSet stops at
// its last pod, and a DaemonSet at the first few, while the others serve.
func (w *part) replaced() bool {
	switch w.set {
	case "StatefulSet":
		return !w.byHand && (w.replicas == nil || *w.replicas == 1)
	case "DaemonSet":
		return false
	}
	return true
}

// listens reports whether a container declares a port.
func (w *part) listens(port int32) bool {
	for _, c := range w.template.Spec.Containers {
		for _, p := range c.Ports {
			if p.ContainerPort == port {
				return true
			}
		}
	}
	return false
}

// onNode binds a disturbance to the node, so that moving off it is a fix, if the one pod can move.
func (w *part) onNode(params map[string]any) map[string]any {
	if !w.claims && w.set != "DaemonSet" && (w.replicas == nil || *w.replicas == 1) {
		params["node"] = true
	}
	return params
}

// outline is a document, in the order in which people read it.
type outline struct {
	ID     string          `yaml:"id"`
	Title  string          `yaml:"title"`
	App    string          `yaml:"app"`
	Load   map[string]any  `yaml:"load,flow"`
	Faults []outlinedFault `yaml:"faults"`
	Tasks  []problem.Task  `yaml:"tasks,flow"`
	Answer struct {
		Components []problem.Component `yaml:"components"`
		Cause      fault.Cause         `yaml:"cause,flow"`
	} `yaml:"answer"`
}

type outlinedFault struct {
	Kind   string         `yaml:"kind"`
	Target string         `yaml:"target"`
	Params map[string]any `yaml:"params,omitempty,flow"`
}

// document is that of one fault in the workload, and its id.
func (w *part) document(o Options, k *fault.Kind, a *app.App, params map[string]any) ([]byte, string, error) {
	d := outline{
		ID:    fmt.Sprintf("%s_%s_%s-{task}-1", k.Name, w.Name, o.Name),
		Title: k.Title + ": " + w.Name, App: o.Name, Load: map[string]any{"rate": o.Rate},
		Faults: []outlinedFault{{k.Name, w.Name, params}},
		Tasks:  []problem.Task{problem.Detection, problem.Localization, problem.Analysis},
	}
	d.Answer.Components = []problem.Component{{Name: w.Name}}
	d.Answer.Cause = k.Cause
	var n yaml.Node
	if err := n.Encode(params); err != nil {
		return nil, "", err
	}
	if fix, err := k.Fix(fault.Target{App: a, Service: w.Name}, &n); err == nil && len(fix) > 0 {
		d.Tasks = append(d.Tasks, problem.Mitigation)
	}
	text, err := yaml.Marshal(d)
	return text, d.ID, err
}
