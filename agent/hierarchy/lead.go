package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// lead finds out who is needed, brings them together and has the work done.
func (g *group) lead(ctx context.Context) error {
	if err := g.meet(ctx); err != nil {
		return err
	}
	switch g.mode {
	case single:
		return g.leadSingle(ctx)
	case peers:
		return g.leadPeers(ctx)
	}
	return g.leadManager(ctx)
}

// meet asks who calls whom, and makes a maintainer for each service.
func (g *group) meet(ctx context.Context) error {
	text, err := g.floor.call(ctx, g.head, "Thought: Who is there to look after, and who depends on whom?\n\nAction:\n"+
		agent.Call("get_topology", g.Namespace))
	if err != nil {
		return err
	}
	g.site, g.unready = readSite(text)
	g.site.Namespace = g.Namespace
	if g.Task == problem.Operation {
		g.order = readOrder(g.Description, g.site.Services)
	}
	if len(g.site.Services) == 0 {
		return errors.New("no service of the application was found, so there is nobody to look after one")
	}
	if g.service != "" && !slices.Contains(g.site.Services, g.service) {
		return fmt.Errorf("there is no service %q to be maintained; there are %s", g.service,
			strings.Join(g.site.Services, ", "))
	}
	for s := range g.guests {
		if !slices.Contains(g.site.Services, s) {
			return fmt.Errorf("there is no service %q for the agent at %s; there are %s", s, g.guests[s],
				strings.Join(g.site.Services, ", "))
		}
	}
	if g.planner() == byRules {
		text, err := g.floor.call(ctx, g.head, "Thought: Everybody here works with the same few helpers, which "+
			"keep of "+
			"long outputs what matters. I set them up for all, and look where Prometheus is.\n\nAction:\n"+
			agent.Call("exec_shell", g.helpers()+"\nkubectl get services -A | grep -i prometheus"))
		if err != nil {
			return err
		}
		g.site.Prometheus = runbook.FindPrometheus(text)
	}
	return g.gather(ctx)
}

// helpers are functions for the shell that everybody uses.
func (g *group) helpers() string {
	if g.Task == problem.Operation {
		return runbook.Helpers() + "\n" + gaugeHelper
	}
	return runbook.Helpers()
}

// columns part kubectl's tables and ours.
var columns = regexp.MustCompile(` {2,}`)

// readSite reads what get_topology shows: the services with a kind, those that users and other services need first,
// and who calls whom; and which of them have not all of their pods ready.
func readSite(text string) (s runbook.Site, unready []string) {
	kinds := map[string]string{}
	s.Calls = map[string][]string{}
	var depends [][2]string
	for line := range strings.Lines(text) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " -> "); ok {
			to, _, _ = strings.Cut(to, ":")
			depends = append(depends, [2]string{from, to})
			continue
		}
		f := columns.Split(strings.TrimSpace(line), -1)
		if len(f) != 5 || !strings.Contains(f[2], "/") || f[1] == "-" {
			continue
		}
		if !slices.Contains(s.Services, f[0]) &&
			!contains([]string{managerName, speakerName, heartbeatName}, f[0]) {
			s.Services, kinds[f[0]] = append(s.Services, f[0]), f[1]
			if ready, all, _ := strings.Cut(f[2], "/"); ready != all || ready == "0" {
				unready = append(unready, f[0])
			}
		}
		for _, to := range strings.Split(f[4], ", ") {
			depends = append(depends, [2]string{f[0], to})
		}
	}
	for _, d := range depends {
		if a, b := d[0], d[1]; a != b && slices.Contains(s.Services, a) && slices.Contains(s.Services, b) &&
			!slices.Contains(s.Calls[a], b) {
			s.Calls[a] = append(s.Calls[a], b)
		}
	}
	order := map[string]int{"service": -1, "infrastructure": 1}
	slices.SortStableFunc(s.Services, func(a, b string) int { return order[kinds[a]] - order[kinds[b]] })
	return s, unready
}

// gather opens the queue and makes the members.
func (g *group) gather(ctx context.Context) error {
	r := record.Group{Mode: string(g.mode), Planner: g.planner()}
	switch g.mode {
	case manager:
		r.Members = append(r.Members, record.Member{Name: g.head, Role: record.ManagerRole})
	case peers:
		r.Members = append(r.Members, record.Member{Name: g.head, Role: record.SpeakerRole})
	case single:
		r.Members = []record.Member{{Name: g.alone(), Role: record.MaintainerRole, Calls: g.site.Calls[g.service]}}
		g.note(record.GroupEvent, r)
		return nil
	}
	for _, s := range g.services() {
		r.Members = append(r.Members, record.Member{
			Name: s, Role: record.MaintainerRole, Calls: g.site.Calls[s], At: g.guests[s],
		})
	}
	g.note(record.GroupEvent, r)
	if err := g.seatGuests(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(g.Scratch, "queue-")
	if err != nil {
		return err
	}
	g.own = dir
	if g.queue, err = queue.Open(ctx, queue.Config{
		URL: g.url, Login: g.login, Dir: dir, Patience: g.lostAfter,
	}); err != nil {
		if g.url != "" {
			err = fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
		}
		return err
	}
	g.bus = newBus(g.queue, append([]string{g.head}, g.services()...), g.note)
	g.chief = &chief{g: g, mail: make(chan *queue.Delivery), seen: map[string]bool{}}
	g.work.Go(func() {
		if err := g.chief.listen(ctx); err != nil && ctx.Err() == nil {
			g.fail(err)
		}
	})
	for _, s := range g.services() {
		m := &member{
			g: g, name: s, mind: func() (Mind, error) { return g.newMind(s) }, over: map[string]bool{},
			did: map[string][]string{},
		}
		g.members = append(g.members, m)
		g.work.Go(func() { m.run(ctx) })
	}
	g.work.Go(func() { g.beat(ctx) })
	return nil
}

// entries are the services through which users come: those that call others and that nobody calls, or else the
// first.
func (g *group) entries() (names []string) {
	for _, s := range g.services() {
		called := slices.ContainsFunc(g.services(), func(o string) bool { return slices.Contains(g.site.Calls[o], s) })
		if !called && len(g.site.Calls[s]) > 0 {
			names = append(names, s)
		}
	}
	if len(names) == 0 {
		names = g.services()[:1]
	}
	const most = 3
	slices.SortStableFunc(names, func(a, b string) int { return len(g.site.Calls[b]) - len(g.site.Calls[a]) })
	return names[:min(len(names), most)]
}
