package runbook

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const (
	// patience is how many seconds a connection may take before connect gives it up.
	patience = 2
	// slowConnect is how many milliseconds it may take to connect within a cluster. It takes less than
	// one where nothing is wrong, but the machine may be busy.
	slowConnect = 400
)

// probe is what came of connecting to a port of a service.
type probe struct {
	service string // or an address
	port    int
	tries   int
	refused int
	timeout int
	slow    int
}

// probeCommand connects to every TCP port of the services and to every pod some times. A Service does
// not send to a pod that is not ready, so the pods are tried themselves too. Nothing is sent, so that
// nobody complains.
func (s *system) probeCommand() string {
	if len(s.services) == 0 && len(s.rows) == 0 {
		return ""
	}
	return fmt.Sprintf("connect $(ports %s)", s.namespace)
}

// readProbes reads lines of "service:port exit-code milliseconds".
func readProbes(text string) (list []probe) {
	at := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		name, port, ok := strings.Cut(f[0], ":")
		if net.ParseIP(name) == nil {
			name, _, _ = strings.Cut(name, ".")
		}
		n, err := strconv.Atoi(port)
		code, err2 := strconv.Atoi(f[1])
		took, err3 := strconv.Atoi(f[2])
		if !ok || err != nil || err2 != nil || err3 != nil {
			continue
		}
		i, ok := at[f[0]]
		if !ok {
			i = len(list)
			at[f[0]] = i
			list = append(list, probe{service: name, port: n})
		}
		p := &list[i]
		p.tries++
		switch {
		case code != 0 && took >= 900*patience: // nc may be a little early
			p.timeout++
		case code != 0:
			p.refused++
		case took >= slowConnect:
			p.slow++
		}
	}
	return list
}

// unreachable reports whether most connections were not made in time, or only slowly.
func (p probe) unreachable() bool { return p.tries > 0 && 2*(p.timeout+p.slow) > p.tries }

// closed reports whether all connections were refused.
func (p probe) closed() bool { return p.tries > 0 && p.refused == p.tries }
