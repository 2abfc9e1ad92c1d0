package runbook

import (
	"fmt"
	"strconv"
	"strings"
)

// The names of what is measured.
const (
	httpErrors   = "http-errors"
	httpLatency  = "http-p95"
	rpcErrors    = "rpc-errors"
	rpcLatency   = "rpc-p95"
	storeErrors  = "store-errors"
	storeLatency = "store-p95"
	cpuThrottled = "throttled"
	memoryUsed   = "memory"
)

// metricsCommand asks Prometheus what is out of bounds, and prints "name who value".
func (s *system) metricsCommand(seconds int) string {
	return fmt.Sprintf("measure %s %s %d", s.prometheus, s.namespace, seconds)
}

// sample is a value beyond its limit.
type sample struct {
	name, who string
	value     float64
}

// latency reports whether the value is a time.
func (m sample) latency() bool {
	return m.name == httpLatency || m.name == rpcLatency || m.name == storeLatency
}

// words tell the value as one would to a colleague.
func (m sample) words() string {
	form := map[string]string{
		httpErrors: "%.0f %% of the HTTP requests to %s fail", rpcErrors: "%.0f %% of the calls to %s fail",
		storeErrors:  "%.0f %% of the requests to stores by %s fail",
		cpuThrottled: "%.0f %% of the CPU periods of %s are throttled",
		memoryUsed:   "%.0f %% of the memory limit of %s is used",
	}[m.name]
	switch {
	case form != "":
		return fmt.Sprintf(form, 100*m.value, m.who)
	case m.name == storeLatency:
		return fmt.Sprintf("one in twenty requests to stores by %s takes more than %.1f s", m.who, m.value)
	case m.latency():
		return fmt.Sprintf("one in twenty requests to %s takes more than %.1f s", m.who, m.value)
	}
	return fmt.Sprintf("%s of %s is %.2f", m.name, m.who, m.value)
}

func readSamples(text string) (list []sample) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		v, err := strconv.ParseFloat(f[2], 64)
		if err != nil || v != v {
			continue
		}
		list = append(list, sample{f[0], f[1], v})
	}
	return list
}
