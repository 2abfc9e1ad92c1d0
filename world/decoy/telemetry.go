package decoy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/noise"
)

const (
	// scrapePort is the annotation by which a pod says where its metrics are.
	scrapePort = "prometheus.io/port"
	// collector is the variable by which a program is told where its traces go.
	collector = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// blurred are the services whose telemetry is missing, each "" for none.
type blurred struct{ metrics, traces string }

// blur chooses a service without metrics and one without traces.
func (d *Decoys) blur() ([]record.Decoy, error) {
	rolling, err := noise.Rolling(d.Env.App)
	if err != nil {
		return nil, err
	}
	d.blurred = blurred{}
	for _, name := range d.far(d.draw(2)) {
		i := slices.IndexFunc(rolling, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
		if i < 0 {
			continue
		}
		if d.blurred.metrics == "" && mistakePort(rolling[i].DeepCopy()) {
			d.blurred.metrics = name
			continue
		}
		if d.blurred.traces == "" && mistakeCollector(rolling[i].DeepCopy()) {
			d.blurred.traces = name
		}
	}
	var list []record.Decoy
	if s := d.blurred.metrics; s != "" {
		list = append(list, record.Decoy{
			Kind: string(Telemetry), Service: s, What: "metrics of " + s + " are looked for at a wrong port",
		})
	}
	if s := d.blurred.traces; s != "" {
		list = append(list, record.Decoy{
			Kind: string(Telemetry), Service: s, What: "traces of " + s + " are sent to a wrong port",
		})
	}
	if len(list) == 0 {
		return nil, errors.New("no service that the faults do not reach has metrics or traces which can be missing")
	}
	return list, nil
}

// Dressed are the services whose Deployments Dress changes.
func (d *Decoys) Dressed() (names []string) {
	for _, s := range []string{d.blurred.metrics, d.blurred.traces} {
		if s != "" {
			names = append(names, s)
		}
	}
	return names
}

// Dress gives a Deployment what a decoy has of it: it is for [fault.Env].
func (d *Decoys) Dress(u *unstructured.Unstructured) {
	if u.GetKind() != "Deployment" {
		return
	}
	switch u.GetName() {
	case d.blurred.metrics:
		mistakePort(u)
	case d.blurred.traces:
		mistakeCollector(u)
	}
}

// Undo applies the Deployments again as they were. The environment must not dress them any more.
func (d *Decoys) Undo(ctx context.Context) error {
	rolling, err := noise.Rolling(d.Env.App)
	if err != nil {
		return err
	}
	for _, u := range rolling {
		if slices.Contains(d.Dressed(), u.GetName()) {
			err = errors.Join(err, fault.Apply(ctx, d.Env, u))
		}
	}
	return err
}

// mistakePort has Prometheus look for metrics at another port than they are at.
func mistakePort(u *unstructured.Unstructured) bool {
	path := []string{"spec", "template", "metadata", "annotations", scrapePort}
	port, _, _ := unstructured.NestedString(u.Object, path...)
	wrong, ok := transposed(port)
	return ok && unstructured.SetNestedField(u.Object, wrong, path...) == nil
}

// mistakeCollector has traces sent to another port than they are received at.
func mistakeCollector(u *unstructured.Unstructured) (changed bool) {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		m, _ := c.(map[string]any)
		env, _, _ := unstructured.NestedSlice(m, "env")
		for _, e := range env {
			v, _ := e.(map[string]any)
			address, _ := v["value"].(string)
			at := strings.LastIndexByte(address, ':')
			if v["name"] != collector || at < 0 {
				continue
			}
			if wrong, ok := transposed(address[at+1:]); ok {
				v["value"], changed = address[:at+1]+wrong, true
			}
		}
		if changed {
			_ = unstructured.SetNestedSlice(m, env, "env")
		}
	}
	return changed && unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers") == nil
}

// transposed is a port as somebody types it in a hurry: 4371 for 4317.
func transposed(port string) (string, bool) {
	n, err := strconv.Atoi(port)
	if err != nil || n < 10 || n > 65535 {
		return "", false
	}
	if a, b := n/10%10, n%10; a != b {
		return fmt.Sprint(n - 10*a - b + 10*b + a), true
	}
	return fmt.Sprint(n - 1), true
}
