package builtin

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/kit"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts Parts
		want  string
	}{
		{"nothing", Parts{}, ""},
		{"one of each", Parts{
			Agents: []agent.Entry{{Name: "mine"}}, Images: []kit.Image{{Names: []string{"example/mine"}}},
			Apps: []*app.App{{Name: "my-app"}}, Faults: []*fault.Kind{{Name: "my_fault"}},
		}, ""},
		{"an agent that is there", Parts{Agents: []agent.Entry{{Name: "runbook"}}}, `there is an agent "runbook" already`},
		{"an agent twice", Parts{Agents: []agent.Entry{{Name: "a"}, {Name: "a"}}}, `there is an agent "a" already`},
		{"an agent without a name", Parts{Agents: []agent.Entry{{}}}, "an agent has no name"},
		{"an image that is there", Parts{Images: []kit.Image{{Names: []string{"docker.io/library/nginx"}}}}, `there is an image "docker.io/library/nginx" already`},
		{"an image with tags that cannot be", Parts{Images: []kit.Image{{Names: []string{"x"}, Tags: "("}}}, `image "x": tags: `},
		{"an application that is there", Parts{Apps: []*app.App{{Name: "hotel-reservation"}}}, `there is an application "hotel-reservation" already`},
		{"a fault that is there", Parts{Faults: []*fault.Kind{{Name: "noop"}}}, `there is a fault "noop" already`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.parts.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

const document = `id: mine-{task}-1
title: user-service is scaled to no replicas
app: social-network
load: {rate: 20}
faults: [{kind: scale_pods_to_zero, target: user-service}]
tasks: [detection]
`

func TestLibrary(t *testing.T) {
	l, err := Parts{Problems: fstest.MapFS{"mine.yaml": {Data: []byte(document)}}}.Library()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := l.Find("mine-detection-1"); err != nil || !p.BuiltIn() {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := l.Find("revoke_auth_mongodb-mitigation-1"); err != nil {
		t.Error(err)
	}
	taken := strings.Replace(document, "mine-", "scale_pod_zero_social_net-", 1)
	_, err = Parts{Problems: fstest.MapFS{"mine.yaml": {Data: []byte(taken)}}}.Library()
	if err == nil || err.Error() != "mine.yaml: id: there is a problem scale_pod_zero_social_net-detection-1 already" {
		t.Errorf("got %v", err)
	}
}
