package coredns

import (
	"context"
	"crypto/sha512"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	version        = "1.12.4"
	reloadInterval = 30 * time.Second
)

// Image returns the image.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"registry.k8s.io/coredns/coredns", "coredns/coredns"},
		Tags:       `latest|v?1\.\d{1,2}\.\d`,
		Entrypoint: []string{"/coredns"},
		Programs:   map[string]kit.Program{"/coredns": Main},
		Memory:     20 << 20,
		Size:       22_000_000,
	}
}

// Main is the program.
func Main(ctx context.Context, env *kit.Env) error {
	flags := flag.NewFlagSet("coredns", flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	conf := flags.String("conf", "Corefile", "Corefile to load")
	show := flags.Bool("version", false, "Show version")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(2)
	}
	if *show {
		fmt.Fprintf(env.Stdout, "CoreDNS-%s\n%s/%s, %s, \n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return nil
	}
	s := &server{env: env, file: *conf, counters: newCounters()}
	text, err := env.ReadFile(*conf)
	if err != nil {
		return fmt.Errorf("loading Caddyfile via flag: %w", err)
	}
	if err := s.load(string(text)); err != nil {
		return err
	}
	return s.run(ctx)
}

// server answers questions by the current configuration.
type server struct {
	env      *kit.Env
	file     string
	counters *counters

	mu     sync.RWMutex
	text   string
	blocks []*site
}

// site is a server block at work.
type site struct {
	block
	plugins  []plugin
	clusters []*cluster // of its kubernetes plug-ins
	logs     bool       // questions
	errors   bool       // what goes wrong
}

// stop ends what its plug-ins started.
func (st *site) stop() {
	for _, c := range st.clusters {
		c.stop()
	}
}

func (b block) has(name string) bool {
	return slices.ContainsFunc(b.directives, func(d directive) bool { return d.name == name })
}

// load puts a Corefile into effect.
func (s *server) load(text string) error {
	blocks, err := parse(s.file, text)
	if err != nil {
		return err
	}
	var sites []*site
	for _, b := range blocks {
		st, err := s.build(b)
		if err != nil {
			stopAll(sites)
			return err
		}
		sites = append(sites, st)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stopAll(s.blocks)
	s.text, s.blocks = text, sites
	return nil
}

func stopAll(sites []*site) {
	for _, st := range sites {
		st.stop()
	}
}

func (s *server) has(name string) (directive, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, b := range s.blocks {
		for _, d := range b.directives {
			if d.name == name {
				return d, true
			}
		}
	}
	return directive{}, false
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context) error {
	defer func() {
		s.mu.RLock()
		defer s.mu.RUnlock()
		stopAll(s.blocks)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	ports := map[string]bool{}
	for _, b := range s.blocks {
		for _, z := range b.zones {
			if !ports[z.port] {
				ports[z.port] = true
				if err := s.listen(ctx, g, z.port); err != nil {
					return err
				}
				fmt.Fprintf(s.env.Stdout, "%s:%s\n", z.name, z.port)
			}
		}
	}
	s.serveHTTP(ctx, g, "health", ":8080", map[string]http.HandlerFunc{"/health": ok})
	s.serveHTTP(ctx, g, "ready", ":8181", map[string]http.HandlerFunc{"/ready": s.ready})
	s.serveHTTP(ctx, g, "prometheus", ":9153", map[string]http.HandlerFunc{"/metrics": s.counters.serve})
	if _, on := s.has("reload"); on {
		fmt.Fprintf(s.env.Stdout, "[INFO] plugin/reload: Running configuration SHA512 = %x\n",
			sha512.Sum512([]byte(s.text)))
		g.Go(func() error { return s.reload(ctx) })
	}
	fmt.Fprintf(s.env.Stdout, "CoreDNS-%s\n%s/%s, %s, \n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	err := g.Wait()
	if _, told := errors.AsType[kit.Killed](err); told || errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.env.Stdout, "[INFO] SIGTERM: Shutting down servers then terminating")
		return nil
	}
	return err
}

// listen serves DNS on a port over UDP and TCP.
func (s *server) listen(ctx context.Context, g *errgroup.Group, port string) error {
	pc, err := s.env.Net.ListenPacket("udp", ":"+port)
	if err != nil {
		return err
	}
	l, err := s.env.Net.Listen("tcp", ":"+port)
	if err != nil {
		pc.Close()
		return err
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { s.serve(w, q, port) })
	for _, srv := range []*dns.Server{{PacketConn: pc, Handler: handler}, {Listener: l, Handler: handler}} {
		g.Go(func() error { return kit.IgnoreClosed(srv.ActivateAndServe()) })
	}
	g.Go(func() error {
		<-ctx.Done()
		pc.Close()
		l.Close()
		return context.Cause(ctx)
	})
	return nil
}

// serveHTTP serves an HTTP plug-in, if it is configured.
func (s *server) serveHTTP(ctx context.Context, g *errgroup.Group, name, addr string,
	routes map[string]http.HandlerFunc,
) {
	d, on := s.has(name)
	if !on {
		return
	}
	if len(d.args) > 0 {
		addr = d.args[0]
	}
	m := http.NewServeMux()
	for path, h := range routes {
		m.Handle(path, h)
	}
	g.Go(func() error {
		l, err := s.env.Net.Listen("tcp", strings.TrimPrefix(addr, "0.0.0.0"))
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: m}
		stop := context.AfterFunc(ctx, func() { srv.Close() })
		defer stop()
		return kit.IgnoreClosed(srv.Serve(l))
	})
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "OK") }

// ready answers once all kubernetes plug-ins have read the cluster.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, b := range s.blocks {
		if slices.ContainsFunc(b.clusters, func(c *cluster) bool { return !c.synced() }) {
			http.Error(w, "kubernetes", http.StatusServiceUnavailable)
			return
		}
	}
	ok(w, r)
}

// reload puts a changed Corefile into effect.
func (s *server) reload(ctx context.Context) error {
	t := time.NewTicker(reloadInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		b, err := s.env.ReadFile(s.file)
		s.mu.RLock()
		same := string(b) == s.text
		s.mu.RUnlock()
		if err != nil || same {
			continue
		}
		fmt.Fprintln(s.env.Stdout, "[INFO] Reloading")
		if err := s.load(string(b)); err != nil {
			fmt.Fprintf(s.env.Stdout, "[ERROR] Restart failed: %v\n[ERROR] plugin/reload: Corefile changed but "+
				"reload failed: %v\n", err, err)
			continue
		}
		fmt.Fprintf(s.env.Stdout,
			"[INFO] plugin/reload: Running configuration SHA512 = %x\n[INFO] Reloading complete\n", sha512.Sum512(b))
	}
}

// site finds the server block with the longest zone a name is in.
func (s *server) site(name, port string) (*site, string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var best *site
	var in string
	for _, b := range s.blocks {
		for _, z := range b.zones {
			if z.port == port && dns.IsSubDomain(z.name, name) && (best == nil || len(z.name) > len(in)) {
				best, in = b, z.name
			}
		}
	}
	return best, in
}

// maxAliases is how many names a chain of aliases may have.
const maxAliases = 8

// serve answers one question.
func (s *server) serve(w dns.ResponseWriter, q *dns.Msg, port string) {
	start := time.Now()
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	if len(q.Question) == 0 {
		m.Rcode = dns.RcodeFormatError
		_ = w.WriteMsg(m)
		return
	}
	question, protocol := q.Question[0], w.RemoteAddr().Network()
	st, zone := s.answer(m, question, port, maxAliases)
	kind, rcode := dns.TypeToString[question.Qtype], dns.RcodeToString[m.Rcode]
	size, dnssec := dns.MinMsgSize, false
	if o := q.IsEdns0(); o != nil {
		size, dnssec = int(o.UDPSize()), o.Do()
	}
	if st != nil && st.logs {
		asked := fmt.Sprintf("%s %s %s %s %d %v %d", kind, dns.ClassToString[question.Qclass], question.Name, protocol,
			q.Len(), dnssec, size)
		fmt.Fprintf(s.env.Stdout, "[INFO] %s - %d %q %s %s %d %.9fs\n", w.RemoteAddr(), q.Id, asked, rcode, flagsOf(m),
			m.Len(), time.Since(start).Seconds())
	}
	s.counters.count(zone, protocol, kind, rcode)
	if protocol == "udp" {
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// answer fills in a reply. It returns who answered, and for which zone.
func (s *server) answer(m *dns.Msg, q dns.Question, port string, aliases int) (*site, string) {
	name := strings.ToLower(q.Name)
	st, zone := s.site(name, port)
	if st == nil || len(st.plugins) == 0 {
		m.Rcode = dns.RcodeRefused
		return st, zone
	}
	r := &request{name: name, original: q.Name, kind: q.Qtype, msg: m}
	r.resolve = func(name string) []dns.RR {
		if aliases == 0 {
			return nil
		}
		target := &dns.Msg{}
		s.answer(target, dns.Question{Name: name, Qtype: q.Qtype, Qclass: q.Qclass}, port, aliases-1)
		return target.Answer
	}
	if !slices.ContainsFunc(st.plugins, func(p plugin) bool { return p(r) }) {
		r.err = errNoPlugin
		r.done(dns.RcodeServerFailure)
	}
	if r.err != nil && st.errors {
		fmt.Fprintf(s.env.Stdout, "[ERROR] plugin/errors: 2 %s %s: %v\n", q.Name, dns.TypeToString[q.Qtype], r.err)
	}
	return st, zone
}

// flagsOf lists the flags of a reply as the log does.
func flagsOf(m *dns.Msg) string {
	list := "qr"
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"aa", m.Authoritative},
		{"tc", m.Truncated},
		{"rd", m.RecursionDesired},
		{"ra", m.RecursionAvailable},
		{"ad", m.AuthenticatedData},
		{"cd", m.CheckingDisabled},
	} {
		if f.set {
			list += "," + f.name
		}
	}
	return list
}
