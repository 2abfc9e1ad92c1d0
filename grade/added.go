package grade

import (
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
)

// added lists what is wrong with a service that was to be added: nobody answers for it but pods of its own, these
// answer for nobody else, they run the program of the service that it is like, and they answer as that one does.
func added(w problem.Want, baseline, l Look) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	own := "deployment/" + w.Service
	found := false
	for _, s := range l.Serving {
		for _, by := range s.By {
			switch {
			case s.Service == w.Service && by.Workload != own:
				add("service %s is answered by %s, not by pods of its own", w.Service, by.name())
			case s.Service != w.Service && by.Workload == own:
				add("pods of %s answer for service %s", w.Service, s.Service)
			case s.Service == w.Service:
				found = true
				if foreign := by.foreign(baseline.servers(w.Like)); foreign != "" {
					add("service %s is answered by %s, not by what %s runs", w.Service, foreign, w.Like)
				}
			}
		}
	}
	if !found && len(list) == 0 {
		add("nobody answers for service %s", w.Service)
	}
	if o := l.operated(w.Service); o != nil && o.Wrong != "" {
		add("service %s does not answer as %s does: %s", w.Service, w.Like, o.Wrong)
	}
	return list
}

// servers are who answers for a Service.
func (l Look) servers(service string) []Server {
	i := slices.IndexFunc(l.Serving, func(s Serving) bool { return s.Service == service })
	if i < 0 {
		return nil
	}
	return l.Serving[i].By
}

// name is what a server is called.
func (s Server) name() string {
	if s.Workload != "" {
		return s.Workload
	}
	return s.Address
}
