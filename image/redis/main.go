package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release that this behaves like. ValkeyVersion is the one that it says to be as Valkey.
const (
	Version       = "6.2.4"
	ValkeyVersion = "9.0.1"
)

const buildID = "1b8ac7ad5a6f9c4e"

// serve is the server of a brand.
func (b brand) serve(ctx context.Context, env *kit.Env) error {
	if len(env.Args) == 2 && (env.Args[1] == "-v" || env.Args[1] == "--version") {
		fmt.Fprintf(env.Stdout, "%s server v=%s sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=%s\n", b.title,
			b.version, buildID)
		return nil
	}
	if len(env.Args) == 2 && (env.Args[1] == "-h" || env.Args[1] == "--help") {
		fmt.Fprint(env.Stdout, strings.ReplaceAll(serverUsage, "redis", b.name))
		return nil
	}
	cfg, err := loadConfig(env)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return kit.Exit(1)
	}
	s, err := newInstance(env, cfg, b)
	if err != nil {
		return err
	}
	defer s.data.Close()
	defer s.holder.Release()
	kept := s.takeOver()
	s.handOver()
	s.log(warning, "oO0OoO0OoO0Oo %s is starting oO0OoO0OoO0Oo", b.title)
	s.log(warning, "%s version=%s, bits=64, commit=00000000, modified=0, pid=%d, just started", b.title, b.version,
		env.PID)
	if len(env.Args) == 1 {
		s.log(warning, "Warning: no config file specified, using the default config. In order to specify a config "+
			"file use %s /path/to/%s.conf", env.Args[0], b.name)
	} else {
		s.log(warning, "Configuration loaded")
	}
	s.role = 'M'
	s.log(notice, "monotonic clock: POSIX clock_gettime")
	signals := env.Notify() // Whoever sees the server listen may stop it.
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.log(notice, "Running mode=standalone, port=%s.", cfg.values["port"])
	s.log(warning, "Server initialized")
	if kept != nil && kept.rdb != nil {
		err = s.loadKept(kept)
	} else {
		err = s.load()
	}
	if err == nil && cfg.bool("appendonly") && s.openAOF() != nil {
		err = errFatal
	}
	if err != nil {
		for _, ln := range listeners {
			ln.Close()
		}
		return err
	}
	s.remember()
	s.log(notice, "Ready to accept connections")
	return s.run(ctx, listeners, signals)
}

// listen opens the addresses that bind gives. A name with a minus may fail.
func (s *instance) listen(ctx context.Context) (list []net.Listener, err error) {
	port := s.config.values["port"]
	if port == "0" {
		return nil, nil
	}
	addresses := strings.Fields(s.config.values["bind"])
	if s.config.values["bind"] == defaults["bind"] {
		addresses = []string{""} // Both families at once.
	}
	for _, a := range addresses {
		optional := strings.HasPrefix(a, "-")
		a = strings.TrimPrefix(a, "-")
		if a == "*" || a == "::*" {
			a = ""
		}
		ln, err := s.env.Net.Listen("tcp", net.JoinHostPort(a, port))
		if err == nil {
			list = append(list, ln)
			continue
		}
		if optional {
			continue
		}
		if a == "" {
			a = "*"
		}
		s.log(warning, "Could not create server TCP listening socket %s:%s: bind: %s", a, port, errnoText(err))
		s.log(warning, "Failed listening on port %s (TCP), aborting.", port)
		for _, ln := range list {
			ln.Close()
		}
		return nil, errFatal
	}
	return list, ctx.Err()
}

// signalled logs a signal, in the words of the original's handler.
func (s *instance) signalled(sig syscall.Signal) {
	name := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[sig]
	s.logMu.Lock()
	fmt.Fprintf(s.env.Stdout, "%d:signal-handler (%d) Received %s scheduling shutdown...\n", s.env.PID,
		time.Now().Unix(), name)
	s.logMu.Unlock()
}

const serverUsage = `Usage: ./redis-server [/path/to/redis.conf] [options] [-]
       ./redis-server -v or --version
       ./redis-server -h or --help

Examples:
       ./redis-server (run the server with default conf)
       ./redis-server /etc/redis/6379.conf
       ./redis-server --port 7777
       ./redis-server /etc/myredis.conf --loglevel verbose
`

// entrypoint is the image's entry script: it becomes the command it is given, which is the server
// if it is only options or a configuration.
func (b brand) entrypoint(ctx context.Context, env *kit.Env) error {
	command := env.Args[1:]
	if len(command) == 0 {
		return nil
	}
	if strings.HasPrefix(command[0], "-") || strings.HasSuffix(command[0], ".conf") {
		command = append([]string{b.name + "-server"}, command...)
	}
	e := *env // It stays the same process.
	e.Args = command
	if command[0] == b.name+"-server" {
		return b.serve(ctx, &e)
	}
	p, err := env.Procs.Start(ctx, env.Child(command...))
	var missing *kit.ExecError
	if errors.As(err, &missing) {
		fmt.Fprintf(env.Stderr, "/usr/local/bin/docker-entrypoint.sh: %v\n", err)
		return kit.Exit(missing.ExitCode())
	}
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}
