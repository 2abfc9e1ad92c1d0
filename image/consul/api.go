package consul

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	defaultWait = 5 * time.Minute
	maxWait     = 10 * time.Minute
	maxValue    = 512 << 10 // of the key-value store
)

// definition is a service or a check as it is registered. Durations are texts such as "10s".
type definition struct {
	ID, Name string
	Tags     []string
	Meta     map[string]string
	Address  string
	Port     int
	Check    *checkDefinition
	Checks   []checkDefinition
}

type checkDefinition struct {
	CheckID, Name, Notes, Status              string
	TCP, HTTP, Method, Interval, Timeout, TTL string
	ForgetAfter                               string `json:"DeregisterCriticalServiceAfter"`
}

// api serves Consul's HTTP API.
type api struct {
	*agent
	ctx context.Context // of the agent: checks outlive the request that starts them
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(*http.Request) (any, error){
		"PUT /v1/agent/service/register":        a.register,
		"PUT /v1/agent/service/deregister/{id}": a.deregister,
		"PUT /v1/agent/check/pass/{id}":         a.beat(passing),
		"PUT /v1/agent/check/warn/{id}":         a.beat(warning),
		"PUT /v1/agent/check/fail/{id}":         a.beat(critical),
		"GET /v1/agent/services":                a.agentServices,
		"GET /v1/agent/checks":                  a.agentChecks,
		"GET /v1/agent/members":                 a.members,
		"GET /v1/agent/self":                    a.self,
		"GET /v1/status/leader":                 func(*http.Request) (any, error) { return a.address() + ":8300", nil },
		"GET /v1/status/peers": func(*http.Request) (any, error) {
			return []string{a.address() + ":8300"}, nil
		},
		"GET /v1/kv/{key...}":    a.kvGet,
		"PUT /v1/kv/{key...}":    a.kvPut,
		"DELETE /v1/kv/{key...}": a.kvDelete,
	} {
		mux.HandleFunc(pattern, a.handle(h))
	}
	for pattern, h := range map[string]func(*http.Request) (any, error){
		"GET /v1/catalog/datacenters":    func(*http.Request) (any, error) { return []string{datacenter}, nil },
		"GET /v1/catalog/nodes":          a.nodes,
		"GET /v1/catalog/services":       a.catalogServices,
		"GET /v1/catalog/service/{name}": a.catalogService,
		"GET /v1/health/service/{name}":  a.healthService,
		"GET /v1/health/checks/{name}":   a.healthChecks,
		"GET /v1/health/node/{name}":     a.healthNode,
		"GET /v1/health/state/{state}":   a.healthState,
	} {
		mux.HandleFunc(pattern, a.blocking(h))
	}
	return mux
}

// statusError is an answer other than 200.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// rawBody is an answer that is not JSON.
type rawBody []byte

func (a *api) handle(h func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, h) }
}

// blocking holds a query with an index until something has changed since, or its wait is over.
func (a *api) blocking(h func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		index, changed := a.state.wait()
		if want, _ := strconv.ParseUint(r.FormValue("index"), 10, 64); want > 0 {
			wait, err := time.ParseDuration(cmp.Or(r.FormValue("wait"), defaultWait.String()))
			if err != nil {
				http.Error(w, "Invalid wait time", http.StatusBadRequest)
				return
			}
			wait = min(wait, maxWait)
			timer := time.NewTimer(wait + rand.N(wait/16+1)) // As Consul does, to spread the load.
			defer timer.Stop()
			for index <= want {
				select {
				case <-changed:
					index, changed = a.state.wait()
					continue
				case <-timer.C:
				case <-r.Context().Done():
					return
				case <-a.ctx.Done():
				}
				break
			}
		}
		w.Header().Set("X-Consul-Index", fmt.Sprint(index))
		w.Header().Set("X-Consul-KnownLeader", "true")
		w.Header().Set("X-Consul-LastContact", "0")
		a.answer(w, r, h)
	}
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, h func(*http.Request) (any, error)) {
	if err := a.env.CPU.Use(r.Context(), requestCost); err != nil {
		return
	}
	v, err := h(r)
	var se *statusError
	switch e := err.(type) {
	case nil:
	case *statusError:
		se = e
	default:
		se = &statusError{http.StatusInternalServerError, e.Error()}
	}
	if se != nil {
		a.log("ERROR", "agent.http: Request error: method=%s url=%s from=%s error=%q", r.Method, r.URL.RequestURI(),
			r.RemoteAddr, se.text)
		w.WriteHeader(se.code)
		fmt.Fprint(w, se.text)
		return
	}
	switch v := v.(type) {
	case nil:
	case rawBody:
		_, _ = w.Write(v)
	default:
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		if r.URL.Query().Has("pretty") {
			enc.SetIndent("", "    ")
		}
		_ = enc.Encode(v)
	}
}

func (a *api) register(r *http.Request) (any, error) {
	var d definition
	dec := json.NewDecoder(r.Body)
	if err := dec.Decode(&d); err != nil {
		return nil, &statusError{http.StatusBadRequest, "Request decode failed: " + err.Error()}
	}
	if d.Name == "" {
		return nil, &statusError{http.StatusBadRequest, "Missing service name"}
	}
	id := cmp.Or(d.ID, d.Name)
	if d.Check != nil {
		d.Checks = append(d.Checks, *d.Check)
	}
	var checks []check
	probes := map[string]probe{}
	for i, cd := range d.Checks {
		p, err := cd.probe()
		if err != nil {
			return nil, &statusError{http.StatusBadRequest, "Invalid check: " + err.Error()}
		}
		checkID := "service:" + id
		if len(d.Checks) > 1 {
			checkID += fmt.Sprintf(":%d", i+1)
		}
		c := check{
			CheckID: cmp.Or(cd.CheckID, checkID), Name: cmp.Or(cd.Name, "Service '"+d.Name+"' check"),
			Notes: cd.Notes, Status: cmp.Or(cd.Status, critical),
		}
		checks = append(checks, c)
		probes[c.CheckID] = p
	}
	tags := d.Tags
	if tags == nil {
		tags = []string{}
	}
	a.state.register(instance{ID: id, Service: d.Name, Tags: tags, Meta: d.Meta, Address: d.Address, Port: d.Port},
		checks)
	for checkID, p := range probes {
		a.checker.start(a.ctx, checkID, id, p)
	}
	return nil, nil
}

// probe reads what a check does.
func (d checkDefinition) probe() (probe, error) {
	p := probe{tcp: d.TCP, http: d.HTTP, method: cmp.Or(d.Method, http.MethodGet), timeout: defaultCheckTimeout}
	for text, to := range map[string]*time.Duration{
		d.Interval: &p.interval, d.Timeout: &p.timeout, d.TTL: &p.ttl,
		d.ForgetAfter: &p.forget,
	} {
		if text == "" {
			continue
		}
		v, err := time.ParseDuration(text)
		if err != nil {
			return p, err
		}
		*to = v
	}
	switch {
	case p.ttl > 0 && d.TCP == "" && d.HTTP == "":
	case (d.TCP == "") == (d.HTTP == ""):
		return p, fmt.Errorf("one of TTL, TCP or HTTP must be set; other kinds of checks are not supported")
	case p.interval <= 0:
		//lint:ignore ST1005 Consul's own words.
		return p, fmt.Errorf("Interval must be > 0 for Script, HTTP, or TCP checks")
	}
	if p.forget > 0 {
		p.forget = max(p.forget, minForgetAfter)
	}
	return p, nil
}

func (a *api) deregister(r *http.Request) (any, error) {
	id := r.PathValue("id")
	for _, c := range a.state.checksOf(func(c *check) bool { return c.ServiceID == id }) {
		a.checker.stop(c.CheckID)
	}
	if !a.state.deregister(id) {
		return nil, &statusError{
			http.StatusNotFound,
			fmt.Sprintf("Unknown service ID %q. Ensure that the service ID is passed, not the service name.", id),
		}
	}
	return nil, nil
}

func (a *api) beat(status string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id := r.PathValue("id")
		if !a.state.setCheck(id, status, r.FormValue("note")) {
			return nil, &statusError{
				http.StatusNotFound,
				fmt.Sprintf("Unknown check ID %q. Ensure that the check ID is passed, not the check name.", id),
			}
		}
		if status == passing {
			a.checker.refresh(id)
		}
		return nil, nil
	}
}
