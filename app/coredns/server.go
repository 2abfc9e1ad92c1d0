package coredns

import (
	"context"
	"crypto/sha512"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/app/kit"
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
		return fmt.Errorf("loading Caddyfile via flag: open %s: no such file or directory", *conf)
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
	plugins []plugin
	cluster *cluster // of its kubernetes plug-in, if it has one
	logs    bool
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
			return err
		}
		sites = append(sites, st)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.blocks
	s.text, s.blocks = text, sites
	for _, o := range old {
		if o.cluster != nil {
			o.cluster.stop()
		}
	}
	return nil
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

func (s *server) run(ctx context.Context) error {
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
		fmt.Fprintf(s.env.Stdout, "[INFO] plugin/reload: Running configuration SHA512 = %x\n", sha512.Sum512([]byte(s.text)))
		g.Go(func() error { return s.reload(ctx) })
	}
	fmt.Fprintf(s.env.Stdout, "CoreDNS-%s\n%s/%s, %s, \n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	err := g.Wait()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, b := range s.blocks {
		if b.cluster != nil {
			b.cluster.stop()
		}
	}
	if errors.Is(err, context.Canceled) {
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
		return err
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { s.answer(ctx, w, q, port) })
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
func (s *server) serveHTTP(ctx context.Context, g *errgroup.Group, name, addr string, routes map[string]http.HandlerFunc) {
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
		if b.cluster != nil && !b.cluster.synced() {
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
			fmt.Fprintf(s.env.Stdout, "[ERROR] Restart failed: %v\n[ERROR] plugin/reload: Corefile changed but reload failed: %v\n", err, err)
			continue
		}
		fmt.Fprintf(s.env.Stdout, "[INFO] plugin/reload: Running configuration SHA512 = %x\n[INFO] Reloading complete\n", sha512.Sum512(b))
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

// answer answers one question.
func (s *server) answer(ctx context.Context, w dns.ResponseWriter, q *dns.Msg, port string) {
	start := time.Now()
	m := new(dns.Msg).SetReply(q)
	if len(q.Question) == 0 {
		m.Rcode = dns.RcodeFormatError
		_ = w.WriteMsg(m)
		return
	}
	question := q.Question[0]
	name := strings.ToLower(question.Name)
	st, in := s.site(name, port)
	if st == nil {
		m.Rcode = dns.RcodeRefused
	} else {
		r := &request{name: name, original: question.Name, kind: question.Qtype, msg: m}
		for _, p := range st.plugins {
			if p(r) {
				break
			}
		}
		if !r.answered {
			m.Rcode = dns.RcodeRefused
		}
		if r.err != nil {
			fmt.Fprintf(s.env.Stdout, "[ERROR] plugin/errors: 2 %s %s: %v\n", question.Name, dns.TypeToString[question.Qtype], r.err)
		}
		if st.logs {
			fmt.Fprintf(s.env.Stdout, "[INFO] %s - %d %q %s %s %d %.9fs\n", w.RemoteAddr(), q.Id,
				fmt.Sprintf("%s %s %s udp %d %v %d", dns.TypeToString[question.Qtype], dns.ClassToString[question.Qclass], question.Name, q.Len(), q.CheckingDisabled, 512),
				dns.RcodeToString[m.Rcode], "qr,aa,rd", m.Len(), time.Since(start).Seconds())
		}
	}
	s.counters.count(in, dns.TypeToString[question.Qtype], dns.RcodeToString[m.Rcode])
	if _, udp := w.RemoteAddr().(interface{ Network() string }); udp && w.RemoteAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// counters are the metrics of the prometheus plug-in.
type counters struct {
	mu   sync.Mutex
	seen map[[3]string]int // zone, type, rcode
}

func newCounters() *counters { return &counters{seen: map[[3]string]int{}} }

func (c *counters) count(zone, kind, rcode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[[3]string{zone, kind, rcode}]++
}

func (c *counters) serve(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	io.WriteString(w, "# HELP coredns_dns_responses_total Counter of response status codes.\n# TYPE coredns_dns_responses_total counter\n")
	for k, n := range c.seen {
		fmt.Fprintf(w, "coredns_dns_responses_total{plugin=\"\",rcode=%q,server=\"dns://:53\",view=\"\",zone=%q} %d\n", k[2], k[0], n)
	}
	io.WriteString(w, "# HELP coredns_dns_requests_total Counter of DNS requests made per zone, protocol and family.\n# TYPE coredns_dns_requests_total counter\n")
	for k, n := range c.seen {
		fmt.Fprintf(w, "coredns_dns_requests_total{family=\"1\",proto=\"udp\",server=\"dns://:53\",type=%q,view=\"\",zone=%q} %d\n", k[1], k[0], n)
	}
}
