package nginx

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// instance is the running server.
type instance struct {
	env            *kit.Env
	pid            int
	stdout, stderr io.Writer
	counters       counters
	sockets        map[string]*socket // by address
	retired        []*socket          // those a reload has no use for, while they finish
	current        atomic.Pointer[generation]
}

// generation is a configuration in use. Requests go on with the one they began with.
type generation struct {
	*config
	*logs
}

// lockedWriter lets requests log at the same time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func newInstance(env *kit.Env) *instance {
	return &instance{
		env: env, pid: env.PID, sockets: map[string]*socket{},
		stdout: &lockedWriter{w: env.Stdout}, stderr: &lockedWriter{w: env.Stderr},
	}
}

// tempDirs is where the original keeps what is too large for memory. It makes these directories
// when it starts, and does not start if it cannot.
var tempDirs = []string{"client_temp", "proxy_temp", "fastcgi_temp", "uwsgi_temp", "scgi_temp"}

const cacheDir = "/var/cache/nginx"

func (in *instance) makeTempDirs() error {
	if err := in.env.MkdirAll(cacheDir, 0o755); err != nil {
		return &confError{msg: fmt.Sprintf("mkdir() %q failed (%s)", cacheDir, errnoText(err))}
	}
	for _, name := range tempDirs {
		dir := cacheDir + "/" + name
		if _, err := in.env.FS.Stat(dir); err == nil {
			continue
		}
		if err := in.env.FS.Mkdir(dir, 0o700); err != nil {
			return &confError{msg: fmt.Sprintf("mkdir() %q failed (%s)", dir, errnoText(err))}
		}
	}
	return nil
}

// How often and how long apart it is tried to bind a port that is in use.
const (
	bindTries = 5
	bindPause = 500 * time.Millisecond
)

// start puts a configuration into use: the first one, or another one in its place. If that fails
// everything stays as it was.
func (in *instance) start(ctx context.Context, cfg *config) error {
	if err := in.makeTempDirs(); err != nil {
		return err
	}
	logs, err := in.openLogs(cfg)
	if err != nil {
		return err
	}
	opened, err := in.bind(ctx, cfg)
	if err != nil {
		logs.close()
		return err
	}
	gen := &generation{cfg, logs}
	old := in.current.Swap(gen)
	for _, l := range cfg.listens {
		in.sockets[l.addr].listen.Store(l)
	}
	for _, s := range opened {
		s.serve(ctx, in)
	}
	for addr, s := range in.sockets {
		if !slices.ContainsFunc(cfg.listens, func(l *listen) bool { return l.addr == addr }) {
			delete(in.sockets, addr)
			in.retired = append(in.retired, s)
			go s.shutdown(ctx)
		}
	}
	if old != nil {
		old.logs.close()
	}
	return nil
}

// bind opens the sockets that a configuration needs and that are not open yet.
func (in *instance) bind(ctx context.Context, cfg *config) (opened []*socket, err error) {
	undo := func() {
		for _, s := range opened {
			s.ln.Close()
			delete(in.sockets, s.addr)
		}
	}
	for try := range bindTries {
		if try > 0 {
			in.emerg("try again to bind() after 500ms")
			t := time.NewTimer(bindPause)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				undo()
				return nil, ctx.Err()
			}
		}
		failed := false
		for _, l := range cfg.listens {
			if s := in.sockets[l.addr]; s != nil && s.tls == l.tls {
				continue
			} else if s != nil { // It now speaks another protocol.
				s.close()
				delete(in.sockets, l.addr)
			}
			ln, err := in.env.Net.Listen("tcp", l.addr)
			if err != nil {
				failed = true
				in.emerg(fmt.Sprintf("bind() to %s failed (%s)", l.name, errnoText(err)))
				continue
			}
			s := newSocket(l, ln)
			in.sockets[l.addr] = s
			opened = append(opened, s)
		}
		if !failed {
			return opened, nil
		}
	}
	undo()
	return nil, &confError{msg: "still could not bind()"}
}

// emerg tells, in the log and on the terminal, why the server cannot start.
func (in *instance) emerg(msg string) {
	in.write(in.stderr, levelEmerg, "", msg)
	fmt.Fprintf(in.stderr, "nginx: [emerg] %s\n", msg)
}

// warn tells what is odd about a configuration.
func (in *instance) warn(cfg *config) {
	for _, w := range cfg.warnings {
		in.write(in.stderr, levelWarn, "", w)
		fmt.Fprintf(in.stderr, "nginx: [warn] %s\n", w)
	}
}

func (in *instance) writePID(cfg *config) error {
	if err := in.env.WriteFile(cfg.pid, []byte(strconv.Itoa(in.pid)+"\n"), 0o644); err != nil {
		return &confError{msg: fmt.Sprintf("open() %q failed (%s)", cfg.pid, errnoText(err))}
	}
	return nil
}

// reopen opens the logs anew, after somebody has moved them away.
func (in *instance) reopen() {
	old := in.current.Load()
	logs, err := in.openLogs(old.config)
	if err != nil {
		in.logf(levelEmerg, "%v", err)
		return
	}
	in.current.Store(&generation{old.config, logs})
	old.logs.close()
}

// stop ends all connections: at once, or when their requests are answered.
func (in *instance) stop(ctx context.Context, graceful bool) {
	var all sync.WaitGroup
	for _, s := range append(in.retired, slices.Collect(maps.Values(in.sockets))...) {
		all.Go(func() {
			if graceful {
				s.shutdown(ctx)
			}
			s.close()
		})
	}
	all.Wait()
	if gen := in.current.Load(); gen != nil {
		_ = in.env.FS.Remove(gen.pid)
		gen.logs.close()
	}
}
