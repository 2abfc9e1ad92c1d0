package consul

import (
	"net/http"
	"slices"
)

func (a *api) agentServices(*http.Request) (any, error) {
	m := map[string]any{}
	for _, i := range a.state.instances("") {
		m[i.ID] = a.service(i)
	}
	return m, nil
}

func (a *api) agentChecks(*http.Request) (any, error) {
	m := map[string]any{}
	for _, c := range a.state.checksOf(func(c *check) bool { return c.ServiceID != "" }) {
		m[c.CheckID] = c
	}
	return m, nil
}

// service is an instance as the agent and health endpoints show it.
func (a *api) service(i instance) map[string]any {
	return map[string]any{
		"ID": i.ID, "Service": i.Service, "Tags": i.Tags, "Meta": i.Meta, "Address": i.Address, "Port": i.Port,
		"Weights": map[string]int{"Passing": 1, "Warning": 1}, "Datacenter": datacenter,
		"CreateIndex": i.CreateIndex, "ModifyIndex": i.ModifyIndex,
	}
}

func (a *api) node() map[string]any {
	return map[string]any{
		"ID": a.id, "Node": a.state.node, "Address": a.address(), "Datacenter": datacenter,
		"TaggedAddresses": map[string]string{"lan": a.address(), "wan": a.address()},
		"Meta":            map[string]string{"consul-network-segment": ""},
	}
}

func (a *api) members(*http.Request) (any, error) {
	return []any{map[string]any{
		"Name": a.state.node, "Addr": a.address(), "Port": 8301, "Status": 1,
		"Tags": map[string]string{"dc": datacenter, "role": "consul", "build": Version, "id": a.id, "port": "8300"},
	}}, nil
}

func (a *api) self(*http.Request) (any, error) {
	return map[string]any{
		"Config": map[string]any{
			"Datacenter": datacenter, "NodeName": a.state.node, "NodeID": a.id, "Server": true,
			"Version": Version,
		},
		"Member": map[string]any{"Name": a.state.node, "Addr": a.address(), "Port": 8301, "Status": 1},
	}, nil
}

func (a *api) nodes(*http.Request) (any, error) { return []any{a.node()}, nil }

func (a *api) catalogServices(*http.Request) (any, error) {
	m := map[string][]string{"consul": {}}
	for _, i := range a.state.instances("") {
		for _, t := range i.Tags {
			if !slices.Contains(m[i.Service], t) {
				m[i.Service] = append(m[i.Service], t)
			}
		}
		if m[i.Service] == nil {
			m[i.Service] = []string{}
		}
	}
	return m, nil
}

func (a *api) catalogService(r *http.Request) (any, error) {
	list := []any{}
	for _, i := range a.state.instances(r.PathValue("name")) {
		n := a.node()
		n["ServiceID"], n["ServiceName"], n["ServiceTags"] = i.ID, i.Service, i.Tags
		n["ServiceAddress"], n["ServicePort"], n["ServiceMeta"] = i.Address, i.Port, i.Meta
		n["CreateIndex"], n["ModifyIndex"] = i.CreateIndex, i.ModifyIndex
		list = append(list, n)
	}
	return list, nil
}

func (a *api) healthService(r *http.Request) (any, error) {
	list := []any{}
	onlyPassing := r.URL.Query().Has("passing") && r.FormValue("passing") != "false" && r.FormValue("passing") != "0"
	for _, i := range a.state.instances(r.PathValue("name")) {
		if tag := r.FormValue("tag"); tag != "" && !slices.Contains(i.Tags, tag) {
			continue
		}
		checks := a.checksOfInstance(i.ID)
		if onlyPassing && slices.ContainsFunc(checks, func(c check) bool { return c.Status != passing }) {
			continue
		}
		list = append(list, map[string]any{"Node": a.node(), "Service": a.service(i), "Checks": checks})
	}
	return list, nil
}

// checksOfInstance are a service's checks and the node's.
func (a *api) checksOfInstance(id string) []check {
	return a.state.checksOf(func(c *check) bool { return c.ServiceID == id || c.ServiceID == "" })
}

func (a *api) healthChecks(r *http.Request) (any, error) {
	return a.state.checksOf(func(c *check) bool { return c.ServiceName == r.PathValue("name") }), nil
}

func (a *api) healthNode(r *http.Request) (any, error) {
	return a.state.checksOf(func(c *check) bool { return c.Node == r.PathValue("name") }), nil
}

func (a *api) healthState(r *http.Request) (any, error) {
	want := r.PathValue("state")
	if !slices.Contains([]string{"any", passing, warning, critical}, want) {
		return nil, &statusError{http.StatusBadRequest, "Invalid state: " + want}
	}
	return a.state.checksOf(func(c *check) bool { return want == "any" || c.Status == want }), nil
}
