package runbook

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// surveyed are the functions for the shell that a post needs beside the helpers.
//
//go:embed survey.sh
var surveyed string

// Helpers are functions for the shell that a [Post] uses. They are to be run once before it.
func Helpers() string { return helpers + "\n" + surveyed }

// FindPrometheus finds the address of Prometheus in what "kubectl get services -A" prints, or "".
func FindPrometheus(text string) string { return findPrometheus(text) }

// Site is what a post is told of the application.
type Site struct {
	Namespace  string
	Prometheus string              // host:port; empty if there is none
	Services   []string            // all names
	Calls      map[string][]string // who calls whom
}

// DependsOn reports whether a service calls another, directly or not.
func (s Site) DependsOn(a, b string) bool {
	return (&system{calls: s.Calls}).dependsOn(a, b)
}

// Near are the services that a service calls or is called by.
func (s Site) Near(service string) (names []string) {
	for _, n := range s.Services {
		if n != service && (slices.Contains(s.Calls[service], n) || slices.Contains(s.Calls[n], service)) {
			names = append(names, n)
		}
	}
	return names
}

// Post is the runbook for one service, for who looks after that alone. It sees its own service in full, and of
// those that call it or that it calls only how they fare. It is not safe for concurrent use.
type Post struct {
	site    Site
	service string
	i       *investigation
	did     []string // what it said when it made its calls
}

// NewPost returns the post of a service. Say makes a call, given as an agent's response, and returns what came of
// it; false means that no more can be made.
func NewPost(site Site, service string, say func(response string) (string, bool)) *Post {
	p := &Post{site: site, service: service}
	c := &console{setup: Helpers(), most: maxLooks}
	c.yield = func(response string) bool {
		thought, _, _ := strings.Cut(strings.TrimPrefix(response, "Thought: "), "\n\nAction:\n")
		p.did = append(p.did, thought)
		observation, ok := say(response)
		c.observation = observation
		return ok
	}
	p.i = &investigation{console: c, system: p.blank()}
	return p
}

// blank is a system of which nothing is known but who is there.
func (p *Post) blank() *system {
	s := newSystem(p.site.Namespace)
	s.names, s.prometheus = p.site.Services, p.site.Prometheus
	for a, list := range p.site.Calls {
		s.calls[a] = slices.Clone(list)
	}
	return s
}

// window is over how many seconds a post measures unless it waits for something.
const window = 30

// Check looks at the service with one call and returns what is wrong: with the service itself, and with its
// neighbours as far as it can be seen from there. Lately, if not 0, is how many seconds of metrics and logs count. It
// looks after a pause, if that is not 0.
func (p *Post) Check(thought string, pause, lately int) []Finding {
	p.i.system, p.i.found = p.blank(), nil
	command, seconds := "", window
	if pause > 0 {
		command = fmt.Sprintf("sleep %d; ", pause)
	}
	if lately > 0 {
		seconds = lately
	}
	prometheus := p.site.Prometheus
	if prometheus == "" {
		prometheus = `""`
	}
	command += strings.Join(append([]string{
		"survey", p.site.Namespace, prometheus, strconv.Itoa(seconds), p.service,
	}, p.site.Near(p.service)...), " ")
	p.read(p.i.shell(thought, command, 120+pause))
	return public(p.i.all())
}

// sectionHead begins a part of a survey.
var sectionHead = regexp.MustCompile(`^== ([a-z-]+)\s*$`)

// read takes in a survey. Lines of logs have a prefix, so none of them can begin a section.
func (p *Post) read(text string) {
	sections := map[string]string{}
	at := ""
	for line := range strings.Lines(text) {
		if m := sectionHead.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			at = m[1]
			continue
		}
		sections[at] += line
	}
	i := p.i
	for _, r := range readRows(sections["pods"]) {
		if c := i.component(r.name); c == p.service || slices.Contains(p.site.Near(p.service), c) {
			i.rows = append(i.rows, r)
		}
	}
	i.objects(sections["deployments"])
	i.objects(sections["services"])
	i.objects(sections["ill-pods"])
	i.readHistories(sections["history"])
	i.readLogs(sections["logs"])
	i.readLogs(sections["last-words"])
	i.learnCalls()
	i.samples = readSamples(sections["metrics"])
	i.probes = readProbes(sections["connections"])
	i.countCreated(sections["events"])
}

// Repair sets right what was found of the service, and returns what was done, as sentences; nothing if a runbook
// has no remedy for it.
func (p *Post) Repair(f Finding) (did []string) {
	g, ok := f.private()
	if !ok || g.vague() || g.component != p.service {
		return nil
	}
	if len(p.i.rows) == 0 && len(p.i.deployments) == 0 {
		p.Check("I look at how it is before I change anything.", 0, 0)
	}
	p.did = nil
	if g.kind == volumeUnbound {
		p.i.fixVolumes([]finding{g})
	} else {
		p.i.fix(g)
	}
	because := fmt.Sprintf("%s is at fault: %s.", g.component, g.evidence)
	for _, d := range p.did {
		if d = strings.TrimSpace(strings.TrimPrefix(d, because)); d != "" {
			did = append(did, d)
		}
	}
	return did
}

// StartAnew has those pods of the service start at once that wait to be started again, and reports whether there
// were any.
func (p *Post) StartAnew(thought string) bool {
	var pods []string
	for _, r := range p.i.rows {
		if p.i.component(r.name) == p.service && r.ill() {
			pods = append(pods, r.name)
		}
	}
	if len(pods) == 0 {
		return false
	}
	p.i.shell(thought, fmt.Sprintf("kubectl delete pod -n %[1]s --ignore-not-found --wait=false %[2]s && "+
		"kubectl rollout status deployment/%[3]s -n %[1]s --timeout=40s", p.site.Namespace, strings.Join(pods, " "+
		""), p.service), 60)
	return true
}

// Ready is how many pods of the service are ready, and how many there are.
func (p *Post) Ready() (ready, all int) {
	for _, r := range p.i.rows {
		if p.i.component(r.name) != p.service || r.done() || r.status == "Terminating" {
			continue
		}
		all++
		if r.ready {
			ready++
		}
	}
	return ready, all
}
