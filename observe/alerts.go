package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

// Alert is an alert that is pending or firing.
type Alert struct {
	Name      string            `json:"name"`
	State     string            `json:"state"` // "pending" or "firing"
	Severity  string            `json:"severity"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels"`
	Summary   string            `json:"summary"`
	Since     time.Time         `json:"since"`
	Value     float64           `json:"value"`
}

// Key names what the alert is about, as [Observer.Stirring] does.
func (a *Alert) Key() string {
	labels := model.LabelSet{}
	for k, v := range a.Labels {
		labels[model.LabelName(k)] = model.LabelValue(v)
	}
	return stir(a.Name, labels)
}

// Alerts returns the alerts about a namespace, or about all if it is "": firing ones first, then by
// name and age.
func (o *Observer) Alerts(ctx context.Context, namespace string) ([]Alert, error) {
	res, err := o.prometheus.Alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	list := []Alert{}
	for _, a := range res.Alerts {
		x := Alert{
			Name: string(a.Labels["alertname"]), State: string(a.State), Severity: string(a.Labels["severity"]),
			Namespace: string(a.Labels["namespace"]), Labels: map[string]string{},
			Summary: string(a.Annotations["summary"]), Since: a.ActiveAt,
		}
		for k, v := range a.Labels {
			x.Labels[string(k)] = string(v)
		}
		x.Value, _ = strconv.ParseFloat(a.Value, 64) // Prometheus writes a number.
		if namespace == "" || x.Namespace == namespace {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since))
	})
	return list, nil
}
