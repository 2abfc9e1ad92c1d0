package cloud

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChooses(t *testing.T) {
	geo := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "geo-1", Labels: map[string]string{"app": "geo", "tier": "back"}},
		Spec:       v1.PodSpec{NodeName: "n1"},
	}
	over := geo.DeepCopy()
	over.Status.Phase = v1.PodSucceeded
	service := &v1.Service{Spec: v1.ServiceSpec{Selector: map[string]string{"app": "geo"}}}
	for name, tt := range map[string]struct {
		s       Selector
		p       *v1.Pod
		service *v1.Service
		want    bool
	}{
		"by labels":             {Selector{Labels: map[string]string{"app": "geo"}}, geo, nil, true},
		"by other labels":       {Selector{Labels: map[string]string{"app": "web"}}, geo, nil, false},
		"by namespace":          {Selector{Namespace: "shop"}, geo, nil, true},
		"by another namespace":  {Selector{Namespace: "other", Pod: "geo-1"}, geo, nil, false},
		"by name":               {Selector{Namespace: "shop", Pod: "geo-1"}, geo, nil, true},
		"by another name":       {Selector{Namespace: "shop", Pod: "geo-2"}, geo, nil, false},
		"by node":               {Selector{Node: "n1"}, geo, nil, true},
		"by another node":       {Selector{Node: "n2"}, geo, nil, false},
		"by service":            {Selector{Namespace: "shop", Service: "geo"}, geo, service, true},
		"no such service":       {Selector{Namespace: "shop", Service: "geo"}, geo, nil, false},
		"a service for nobody":  {Selector{Namespace: "shop", Service: "geo"}, geo, &v1.Service{}, false},
		"over":                  {Selector{Namespace: "shop"}, over, nil, false},
		"one of several not so": {Selector{Namespace: "shop", Node: "n2", Labels: map[string]string{"app": "geo"}}, geo, nil, false},
	} {
		if got := tt.s.Chooses(tt.p, tt.service); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := Selector{Namespace: "shop", Labels: map[string]string{"tier": "back", "app": "geo"}, Node: "n1"}
	if got := s.String(); got != "labels app=geo,tier=back, namespace shop, node n1" {
		t.Error(got)
	}
}

func TestScheduleAt(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		schedule      Schedule
		elapsed, step time.Duration
		degree        float64
		change        time.Duration
	}{
		{Schedule{}, 5 * s, s, 1, 0},
		{Schedule{Ramp: 20 * s}, 0, 5 * s, 0.25, 5 * s},
		{Schedule{Ramp: 20 * s}, 7 * s, 5 * s, 0.5, 3 * s},
		{Schedule{Ramp: 20 * s}, 20 * s, 5 * s, 1, 0},
		{Schedule{Ramp: 3 * s}, 0, 5 * s, 1, 5 * s},
		{Schedule{Every: 60 * s, For: 20 * s}, 65 * s, s, 1, 15 * s},
		{Schedule{Every: 60 * s, For: 20 * s}, 85 * s, s, 0, 35 * s},
		{Schedule{Every: 60 * s, For: 20 * s, Ramp: 200 * s}, 62 * s, 50 * s, 0.5, 18 * s},
	} {
		if degree, change := tt.schedule.At(tt.elapsed, tt.step); degree != tt.degree || change != tt.change {
			t.Errorf("%+v after %v: %v, %v", tt.schedule, tt.elapsed, degree, change)
		}
	}
}

// picky refuses to kill.
type picky struct{ Chaos }

func (picky) Refuses(d Disturbance) string {
	if d.Pod != nil {
		return "no killing"
	}
	return ""
}

func TestRefusal(t *testing.T) {
	kill := Disturbance{Pod: &PodChaos{Action: PodKill}}
	for want, c := range map[string]Chaos{
		"this cluster has no means to disturb pods": nil, "": struct{ Chaos }{}, "no killing": picky{},
	} {
		if got := Refusal(c, kill); got != want {
			t.Errorf("%T: %q, want %q", c, got, want)
		}
	}
	if got := Refusal(picky{}, Disturbance{Stress: &StressChaos{CPU: 1}}); got != "" {
		t.Error(got)
	}
}
