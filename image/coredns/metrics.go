package coredns

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// counters are the metrics of the prometheus plug-in.
type counters struct {
	mu        sync.Mutex
	requests  map[string]int // by labels
	responses map[string]int
}

func newCounters() *counters {
	return &counters{requests: map[string]int{}, responses: map[string]int{}}
}

func (c *counters) count(zone, protocol, kind, rcode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[fmt.Sprintf(`family="1",proto=%q,server="dns://:53",type=%q,view="",zone=%q`, protocol, kind, zone)]++
	c.responses[fmt.Sprintf(`plugin="",rcode=%q,server="dns://:53",view="",zone=%q`, rcode, zone)]++
}

// serve is the page Prometheus reads.
func (c *counters) serve(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	write := func(name, help string, series map[string]int) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n", name, help, name)
		for _, labels := range slices.Sorted(maps.Keys(series)) {
			fmt.Fprintf(w, "%s{%s} %d\n", name, labels, series[labels])
		}
	}
	write("coredns_dns_requests_total", "Counter of DNS requests made per zone, protocol and family.", c.requests)
	write("coredns_dns_responses_total", "Counter of response status codes.", c.responses)
}
