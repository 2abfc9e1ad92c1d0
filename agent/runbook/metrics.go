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
