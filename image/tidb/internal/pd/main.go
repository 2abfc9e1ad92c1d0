package pd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
	"github.com/aiopslab/aiopslab/image/tidb/internal/logs"
	"github.com/aiopslab/aiopslab/kit"
)

// ClientPort and PeerPort are where PD listens.
const (
	ClientPort = 2379
	PeerPort   = 2380
)

const (
	gossipEvery = time.Second
	gossipTime  = time.Second
	stateFile   = "/pd.json"
)

// server is one PD server.
type server struct {
	env     *kit.Env
	log     *logs.Logger
	version string
	dir     string
	state   *state
	client  *http.Client
}

// Main is pd-server of a version.
func Main(version string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		f := pflag.NewFlagSet("pd-server", pflag.ContinueOnError)
		f.SetOutput(env.Stderr)
		shown := f.BoolP("version", "V", false, "print the version")
		name := f.String("name", env.Hostname, "the name of this member")
		dir := f.String("data-dir", "/var/lib/pd", "the directory of its data")
		anywhere := func(port int) string { return fmt.Sprintf("http://0.0.0.0:%d", port) }
		clientURLs := f.String("client-urls", anywhere(ClientPort), "where to listen for clients")
		peerURLs := f.String("peer-urls", anywhere(PeerPort), "where to listen for members")
		clients := f.String("advertise-client-urls", "", "where clients reach it")
		peers := f.String("advertise-peer-urls", "", "where other members reach it")
		config := f.String("config", "", "a configuration file, of which schedule.max-store-down-time is heeded")
		if err := f.Parse(env.Args[1:]); err != nil {
			return kit.Exit(1)
		}
		if *shown {
			fmt.Fprintf(env.Stdout, "Release Version: %s\n", version)
			return nil
		}
		me := kv.Member{
			Name:       *name,
			ClientURLs: kv.Endpoints(cmp.Or(*clients, fmt.Sprintf("http://%s:%d", env.Hostname, ClientPort))),
			PeerURLs:   kv.Endpoints(cmp.Or(*peers, fmt.Sprintf("http://%s:%d", env.Hostname, PeerPort))),
		}
		env.Keep(kv.NotAlone)
		p := &server{env: env, log: logs.New(env.Stdout, "server.go"), version: version, dir: *dir}
		down, err := p.downTime(*config)
		if err != nil {
			return err
		}
		return p.run(ctx, me, down, *clientURLs, *peerURLs)
	}
}

// downTime is after how long a store is down, by a configuration file, if there is one.
func (p *server) downTime(file string) (time.Duration, error) {
	if file == "" {
		return maxStoreDownTime, nil
	}
	b, err := p.env.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return downTime(string(b))
}

func (p *server) run(ctx context.Context, me kv.Member, down time.Duration, listens ...string) error {
	p.log.Info("Welcome to Placement Driver (PD)", "release-version", p.version)
	kept, err := p.load()
	if err != nil {
		return err
	}
	p.state = newState(me, kept, time.Now)
	p.state.down = down
	if err := p.keep(); err != nil {
		return err
	}
	transport := p.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	p.client = &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	p.exchange(ctx) // Whoever is there already is known before anybody asks.
	h := p.handler()
	for _, l := range listens {
		u, err := url.Parse(l)
		if err != nil {
			return fmt.Errorf("%s is no address: want one such as http://0.0.0.0:2379", l)
		}
		ln, err := p.env.Net.Listen("tcp", u.Host)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
		defer srv.Close()
		wg.Go(func() { _ = srv.Serve(ln) })
	}
	p.log.Info("PD server is ready", "name", me.Name, "cluster-id", p.state.tell().Cluster)
	return p.live(ctx)
}

// live exchanges what there is to know, until it ends.
func (p *server) live(ctx context.Context) error {
	leader := ""
	for {
		if p.state.dismissed() {
			p.log.Print("FATAL", "this member has been removed from the cluster", "name", p.state.me.Name)
			return kit.Exit(1)
		}
		if err := p.keep(); err != nil {
			return err
		}
		now := ""
		if l := p.state.leader(); l != nil {
			now = l.Name
		}
		if now != leader {
			leader = now
			p.log.Info("PD leader is changed", "leader-name", cmp.Or(now, "none"))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(p.state.pause()):
		}
		p.exchange(ctx)
	}
}

// exchange tells all other members what this one knows, and learns what they know.
func (p *server) exchange(ctx context.Context) {
	var wg sync.WaitGroup
	for _, url := range p.others(ctx) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, gossipTime)
			defer cancel()
			if g, err := p.ask(ctx, url); err == nil && g.From != p.state.me.Name {
				p.state.learn(g.From, g.Shared)
			}
		})
	}
	wg.Wait()
}

// others are where members may be: those that are known, and the pods of the Service that this one is in.
func (p *server) others(ctx context.Context) (urls []string) {
	known := map[string]bool{}
	for _, m := range p.state.members() {
		if m.Name != p.state.me.Name && len(m.PeerURLs) > 0 {
			urls = append(urls, m.PeerURLs[0])
			if u, err := url.Parse(m.PeerURLs[0]); err == nil {
				if list, err := p.env.Net.LookupHost(ctx, u.Hostname()); err == nil && len(list) > 0 {
					known[list[0]] = true
				}
			}
		}
	}
	for _, ip := range p.env.Net.Addrs() {
		known[ip.String()] = true
	}
	u, err := url.Parse(p.state.me.PeerURLs[0])
	if err != nil {
		return urls
	}
	_, service, ok := strings.Cut(u.Hostname(), ".")
	if !ok {
		return urls
	}
	list, _ := p.env.Net.LookupHost(ctx, service)
	for _, ip := range list {
		if !known[ip] {
			urls = append(urls, "http://"+net.JoinHostPort(ip, u.Port()))
		}
	}
	return urls
}

func (p *server) ask(ctx context.Context, url string) (*gossip, error) {
	body, err := json.Marshal(gossip{p.state.me.Name, p.state.tell()})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+pathGossip, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var g gossip
	return &g, json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&g)
}

func (p *server) load() (*shared, error) {
	if err := p.env.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	b, err := p.env.ReadFile(p.dir + stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept := &shared{}
	if err := json.Unmarshal(b, kept); err != nil {
		return nil, fmt.Errorf("%s: %w", p.dir+stateFile, err)
	}
	return kept, nil
}

// keep writes what must outlast a restart, if it has changed.
func (p *server) keep() error {
	if !p.state.changed() {
		return nil
	}
	b, err := json.Marshal(p.state.tell())
	if err != nil {
		return err
	}
	if err := p.env.WriteFile(p.dir+stateFile+".tmp", b, 0o644); err != nil {
		return err
	}
	return p.env.FS.Rename(p.dir+stateFile+".tmp", p.dir+stateFile)
}
