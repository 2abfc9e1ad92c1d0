package runbook

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestReadTopology(t *testing.T) {
	s := newSystem("n")
	for _, name := range []string{"front", "back", "db", "dns"} {
		svc := v1.Service{}
		svc.Name = name
		s.services = append(s.services, svc)
	}
	s.readTopology(`SERVICE  KIND            READY PODS  PORTS     DEPENDS ON
front    service         1/1         80        back, jaeger
back     service         0/1         81->9999  db
db       mongodb         1/1         27017     -
dns      infrastructure  1/1         53->8600  -

Calls in the traces of the last 10 minutes:
  front -> back: 120
  front -> nobody: 3
  nobody -> dns: 3
`)
	want := map[string][]string{"front": {"back"}, "back": {"db"}}
	if !reflect.DeepEqual(s.calls, want) {
		t.Errorf("got %v, want %v", s.calls, want)
	}
}
