package kv

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/image/tidb/internal/logs"
	"github.com/aiopslab/aiopslab/kit"
)

// reportEvery is how often a store tells PD of itself.
const reportEvery = time.Second

// options are the flags of tikv-server.
type options struct {
	pd, addr, advertise, status, advertiseStatus, dir, config, capacity, logLevel string
}

func parse(env *kit.Env) (o options, err error) {
	f := pflag.NewFlagSet("tikv-server", pflag.ContinueOnError)
	f.SetOutput(env.Stderr)
	f.StringVar(&o.pd, "pd", "", "the addresses of PD, with commas between them")
	f.StringVar(&o.addr, "addr", fmt.Sprintf("0.0.0.0:%d", Port), "where to listen")
	f.StringVar(&o.advertise, "advertise-addr", "", "where others reach it")
	f.StringVar(&o.status, "status-addr", fmt.Sprintf("0.0.0.0:%d", StatusPort), "where to serve status and metrics")
	f.StringVar(&o.advertiseStatus, "advertise-status-addr", "", "where others reach its status")
	f.StringVar(&o.dir, "data-dir", "/var/lib/tikv", "the directory of its data")
	f.StringVar(&o.config, "config", "", "a configuration file")
	f.StringVar(&o.capacity, "capacity", "0", "how much the store may hold")
	f.StringVar(&o.logLevel, "log-level", "info", "how much to log")
	if err := f.Parse(env.Args[1:]); err != nil {
		return o, kit.Exit(1)
	}
	if o.pd == "" {
		fmt.Fprintln(env.Stderr, "tikv-server: the address of PD is missing: give it --pd")
		return o, kit.Exit(1)
	}
	o.advertise = cmp.Or(o.advertise, env.Hostname+":"+strconv.Itoa(Port))
	o.advertiseStatus = cmp.Or(o.advertiseStatus, env.Hostname+":"+strconv.Itoa(StatusPort))
	return o, nil
}

// Main is tikv-server of a version.
func Main(version string) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		if len(env.Args) == 2 && (env.Args[1] == "-V" || env.Args[1] == "--version") {
			fmt.Fprintf(env.Stdout, "TiKV\nRelease Version:   %s\n", strings.TrimPrefix(version, "v"))
			return nil
		}
		o, err := parse(env)
		if err != nil {
			return err
		}
		return serve(ctx, env, o, version)
	}
}

// NotAlone is why a server is not put back to how it was: the others would know what it has forgotten, and a log that
// was promised to them must not become shorter.
func NotAlone(context.Context) (any, int64, error) {
	return nil, 0, errors.New("its program keeps data together with others, and cannot go back alone")
}

func serve(ctx context.Context, env *kit.Env, o options, version string) error {
	env.Keep(NotAlone)
	log := logs.New(env.Stdout, "server.rs")
	log.Info("Welcome to TiKV", "Release Version", strings.TrimPrefix(version, "v"))
	s, found, err := openStore(ctx, env, o.dir)
	if err != nil {
		return err
	}
	defer s.close()
	s.log, s.Address = log.Print, o.advertise
	if s.ID, err = storeID(env, o.dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport := env.HTTPTransport()
	transport.MaxIdleConnsPerHost = 4
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	out := &outbox{ctx: ctx, from: o.advertise, client: client, wg: &wg, lines: map[string]chan *raftpb.Message{}}
	s.send = out.send

	pd := &PD{HTTP: client, Seeds: Endpoints(o.pd)}
	k := &keeper{s: s, pd: pd, o: o, version: version, log: log, client: client}
	founder, err := k.begin(ctx, found)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := s.start(founder); err != nil {
		return err
	}
	f := newFront(s)
	for address, h := range map[string]http.Handler{o.addr: f.handler(), o.status: s.status(version)} {
		ln, err := env.Net.Listen("tcp", address)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
		defer srv.Close()
		wg.Go(func() { _ = srv.Serve(ln) })
	}
	log.Info("TiKV is ready to serve", "store_id", s.ID)
	wg.Go(func() { k.report(ctx) })
	err = s.run(ctx)
	if s.removed() {
		log.Print("WARN", "the store was removed from the cluster; it serves no more", "store_id", s.ID)
		<-ctx.Done()
	}
	return err
}

// storeID is the identity of a store, drawn when it is new.
func storeID(env *kit.Env, dir string) (uint64, error) {
	if b, err := env.ReadFile(dir + "/store.id"); err == nil {
		return strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	}
	var b [8]byte
	_, _ = rand.Read(b[:])
	id := uint64(binary.BigEndian.Uint32(b[:]))%900_000 + 1001
	return id, env.WriteFile(dir+"/store.id", []byte(strconv.FormatUint(id, 10)), 0o644)
}

// keeper keeps PD informed, and does what it orders.
type keeper struct {
	s       *Store
	pd      *PD
	o       options
	version string
	log     *logs.Logger
	client  *http.Client
}

// begin waits until it is clear whether the store founds the group. One that has data does not, nor one that others
// have founded.
func (k *keeper) begin(ctx context.Context, found bool) (founder bool, err error) {
	for first := true; !found; first = false {
		orders, err := k.pd.Report(ctx, k.describe())
		switch {
		case err != nil && first:
			k.log.Print("WARN", "failed to connect to PD, try again", "err", err)
		case err == nil && orders.Bootstrapped:
			return false, nil
		case err == nil && ordinal(k.s.Address) <= 0:
			k.log.Info("try bootstrap cluster", "store_id", k.s.ID, "region_id", 2)
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(reportEvery / 2):
		}
	}
	return false, nil
}

// report tells PD of the store again and again, and joins the group if it is no member.
func (k *keeper) report(ctx context.Context) {
	failing := false
	for {
		orders, err := k.pd.Report(ctx, k.describe())
		if err == nil {
			k.s.handOver(ctx, orders.Lead)
			k.s.remove(ctx, orders.Remove)
			k.join(ctx, orders.Stores)
		} else if !failing && ctx.Err() == nil {
			k.log.Print("ERROR", "failed to send heartbeat to PD", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportEvery):
		}
	}
}

// join asks the stores to take this one in.
func (k *keeper) join(ctx context.Context, stores []Peer) {
	if k.member() {
		return
	}
	for _, p := range stores {
		if p.ID == k.s.ID {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTime)
		err := post(call, k.client, "http://"+p.Address+pathJoin, joining{k.s.ID, k.s.Address}, nil)
		cancel()
		if err == nil {
			k.log.Info("join the region", "store_id", k.s.ID, "by", p.Address)
			return
		}
	}
}

func (k *keeper) member() bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.s.peers[k.s.ID] != "" || k.s.gone
}

func (k *keeper) describe() StoreReport {
	s := k.s
	r := StoreReport{
		ID: s.ID, Address: s.Address, StatusAddress: k.o.advertiseStatus,
		Version: strings.TrimPrefix(k.version, "v"), Started: s.env.Since().Unix(),
	}
	if info, err := s.env.FS.StatFS(k.o.dir); err == nil {
		r.Capacity, r.Used = info.Total, s.journal.used()
		r.Available = max(0, info.Total-r.Used)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Member, r.Leader = s.peers[s.ID] != "" && !s.gone, s.leader == s.ID && s.ID != 0
	r.Term, r.Applied = s.term, s.applied
	if r.Leader {
		for id, address := range s.peers {
			r.Peers = append(r.Peers, Peer{id, address})
		}
		slices.SortFunc(r.Peers, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	}
	return r
}

// outbox sends Raft's messages, to each member in order. What does not get through is lost; Raft sends again.
type outbox struct {
	ctx    context.Context
	from   string // the store's address
	client *http.Client
	wg     *sync.WaitGroup
	lines  map[string]chan *raftpb.Message // used by the loop alone
}

func (o *outbox) send(to string, m *raftpb.Message) {
	line := o.lines[to]
	if line == nil {
		line = make(chan *raftpb.Message, 128)
		o.lines[to] = line
		o.wg.Go(func() { o.carry(to, line) })
	}
	select {
	case line <- m:
	default:
	}
}

func (o *outbox) carry(to string, line <-chan *raftpb.Message) {
	for {
		select {
		case <-o.ctx.Done():
			return
		case m := <-line:
			body, err := proto.Marshal(m)
			if err != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(o.ctx, 2*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to+pathRaft, bytes.NewReader(body))
			if err == nil {
				req.Header.Set(fromHeader, o.from)
				if resp, err := o.client.Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}
			cancel()
		}
	}
}
