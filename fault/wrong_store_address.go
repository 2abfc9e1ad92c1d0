package fault

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

type addressParams struct {
	Port int `yaml:"port" doc:"the port at which the service looks for its store"`
}

// Validate implements the check of parameters.
func (p addressParams) Validate() error {
	if p.Port < 1 || p.Port > 65535 {
		return errors.New(`"port" must be between 1 and 65535`)
	}
	return nil
}

func wrongStoreAddress() *Kind {
	return Define(Kind{
		Name:  "wrong_store_address",
		Title: "A service looks for its Redis on a port that nobody listens on",
		Description: `The variable of a service that says where its Redis is gets another port. The store is well, and others
use it; the service starts, and fails at whatever it needs the store for. An operator sets the variable
right.`,
		Cause:     Cause{term.Application, term.Misconfiguration},
		TrueFixes: RollBackFixes,
		Targets: func(a *app.App) (names []string) {
			for _, s := range a.Services { // Those too that the application scales by itself: an answer tells.
				if v, _, _ := storeVariable(a, s.Name); v != "" && s.Name != a.Frontend.Service {
					names = append(names, s.Name)
				}
			}
			return names
		},
	}, addressParams{Port: 16379}, func(t Target, p addressParams) (Fault, error) {
		name, host, port := storeVariable(t.App, t.Service)
		if port == strconv.Itoa(p.Port) {
			return nil, fmt.Errorf("wrong_store_address: parameter \"port\": %s of %s has this port anyway", name,
				t.Service)
		}
		return Redeploy(t, func(spec map[string]any) error {
			return setVariable(spec, name, net.JoinHostPort(host, strconv.Itoa(p.Port)))
		})
	}, func(t Target, _ addressParams) []string {
		name, host, port := storeVariable(t.App, t.Service)
		return append([]string{
			fmt.Sprintf("kubectl set env %s %s=%s", ref(t.App, t.Service), name, net.JoinHostPort(host, port)),
		}, renewed(t)...)
	})
}

// storeVariable is the variable of a service's container that has the address of a Redis of the application; "" if
// there is none.
func storeVariable(a *app.App, service string) (name, host, port string) {
	o, err := read(a)
	if err != nil {
		return "", "", ""
	}
	containers := o.containers(service)
	if len(containers) == 0 {
		return "", "", ""
	}
	for _, v := range containers[0].Env {
		host, port, err := net.SplitHostPort(v.Value)
		if err != nil {
			continue
		}
		if s, ok := a.Service(host); ok && s.Kind == "redis" {
			return v.Name, host, port
		}
	}
	return "", "", ""
}

// setVariable changes a variable of the first container of a pod's specification.
func setVariable(spec map[string]any, name, value string) error {
	list, _ := spec["containers"].([]any)
	if len(list) == 0 {
		return errors.New("there is no container")
	}
	c, _ := list[0].(map[string]any)
	variables, _ := c["env"].([]any)
	for _, v := range variables {
		if v, ok := v.(map[string]any); ok && v["name"] == name {
			v["value"] = value
			return nil
		}
	}
	return fmt.Errorf("there is no variable %s", name)
}
