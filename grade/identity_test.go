package grade

import (
	"slices"
	"strings"
	"testing"
)

// served is a look at a system with its Services.
func served() Look {
	l := healthy(0)
	l.Serving = []Serving{
		{Service: "geo", Kind: "service", By: []Server{{Workload: "deployment/geo", Programs: []Program{{"aiopslab/hotel-reservation:v1", "geo"}}}}},
		{Service: "mongodb-geo", Kind: "mongodb", By: []Server{{Workload: "deployment/mongodb-geo", Programs: []Program{{"mongo:4.4.6", ""}}}}},
		{Service: "jaeger", Kind: "infrastructure", By: []Server{{Workload: "deployment/jaeger", Programs: []Program{{"jaegertracing/all-in-one:1", ""}}}}},
		{Service: "unused", Kind: "service"},
	}
	return l
}

func TestIdentity(t *testing.T) {
	echo := Server{Workload: "deployment/echo", Programs: []Program{{"hashicorp/http-echo", "/http-echo"}}}
	const stub = "service geo is answered by hashicorp/http-echo, not by the application"
	by := func(i int, servers ...Server) func(*Look) { return func(l *Look) { l.Serving[i].By = servers } }
	geo := func(image, command string) func(*Look) {
		return by(0, Server{Workload: "deployment/geo", Programs: []Program{{image, command}}})
	}
	failing := func(l *Look) { l.Load.Total.Success = 0 }
	wrong := func(l *Look) { l.Serving[0].Wrong = "Unimplemented: unknown service geo.Geo" }
	for _, tt := range []struct {
		name  string
		spoil []func(*Look)
		want  string // the first complaint
	}{
		{"the same", nil, ""},
		{"an older record", []func(*Look){func(l *Look) { l.Serving = nil }}, ""},

		// Legitimate changes.
		{"another tag", []func(*Look){geo("aiopslab/hotel-reservation:v2", "geo")}, ""},
		{"a digest", []func(*Look){geo("aiopslab/hotel-reservation@sha256:"+strings.Repeat("a", 64), "geo")}, ""},
		{"the registry's whole name", []func(*Look){by(1, Server{Programs: []Program{{"docker.io/library/mongo:5", ""}}})}, ""},
		{"the command with its path", []func(*Look){geo("aiopslab/hotel-reservation:v1", "/usr/bin/geo")}, ""},
		{"a second deployment", []func(*Look){func(l *Look) {
			l.Serving[0].By = append(l.Serving[0].By, Server{Workload: "deployment/geo-2", Programs: []Program{{"aiopslab/hotel-reservation:v1", "geo"}}})
		}}, ""},
		{"a sidecar", []func(*Look){by(0, Server{Programs: []Program{{"aiopslab/hotel-reservation:v1", "geo"}, {"envoyproxy/envoy", ""}}})}, ""},
		{"a proxy that does it right", []func(*Look){by(0, Server{Programs: []Program{{"nginx", ""}}})}, ""},
		{"a wrapper that does it right", []func(*Look){geo("aiopslab/hotel-reservation:v1", "sh")}, ""},
		{"another build that does it right", []func(*Look){geo("yinfangchen/geo:app3", "geo")}, ""},
		{"users fail, the application serves", []func(*Look){failing}, "0.0 % of requests succeed"},

		// Others that answer.
		{"a stub, users fail", []func(*Look){by(0, echo), failing}, stub},
		{"a stub that users do not meet", []func(*Look){by(0, echo), wrong}, stub},
		{"a stub beside the application", []func(*Look){func(l *Look) { l.Serving[0].By = append(l.Serving[0].By, echo) }, wrong}, stub},
		{"a stub, and the fault shows", []func(*Look){by(0, echo), func(l *Look) { l.Symptoms = []string{"geo is slow"} }}, stub},
		{"another program of the image", []func(*Look){geo("aiopslab/hotel-reservation:v1", "rate"), wrong}, "service geo is answered by aiopslab/hotel-reservation running rate, not by the application"},
		{"the image asleep beside a stub", []func(*Look){by(0, Server{Programs: []Program{{"aiopslab/hotel-reservation:v1", "sleep"}, echo.Programs[0]}}), wrong}, "service geo is answered by aiopslab/hotel-reservation running sleep and hashicorp/http-echo running /http-echo, not by the application"},
		{"a name outside", []func(*Look){by(0, Server{Address: "example.com"}), wrong}, "service geo is answered by example.com, not by the application"},
		{"an address by hand", []func(*Look){by(0, Server{Address: "10.0.0.9"}), failing}, "service geo is answered by 10.0.0.9, not by the application"},
		{"a sidecar that takes the port", []func(*Look){by(0, Server{Programs: []Program{{"aiopslab/hotel-reservation:v1", "geo"}, echo.Programs[0]}}), wrong}, "service geo does not answer as the application does: Unimplemented"},
		{"what no user sees", []func(*Look){by(2, echo)}, "service jaeger is answered by hashicorp/http-echo, not by the application"},
		{"nobody", []func(*Look){by(1)}, "nobody answers for service mongodb-geo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := served()
			l.Serving = slices.Clone(l.Serving)
			for _, s := range tt.spoil {
				s(&l)
			}
			got := append(Complaints(served(), l), "")[0]
			if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
