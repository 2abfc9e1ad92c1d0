package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// server is the running program.
type server struct {
	env *kit.Env

	mu sync.Mutex // held while a line is logged
}

// Main serves until a signal stops it.
func Main(ctx context.Context, env *kit.Env) error {
	switch args := env.Args[1:]; {
	case slices.Contains(args, "-v"), slices.Contains(args, "-V"):
		fmt.Fprintf(env.Stdout, "Server version: Apache/%s (Unix)\n", Version)
		return nil
	case slices.Contains(args, "-t"):
		fmt.Fprintln(env.Stderr, "Syntax OK")
		return nil
	}
	s := &server{env: env}
	return s.run(ctx)
}

func (s *server) run(ctx context.Context) error {
	signals := s.env.Notify() // Whoever sees the server listen may stop it.
	own := "127.0.0.1"
	if addrs := s.env.Net.Addrs(); len(addrs) > 0 {
		own = addrs[0].String()
	}
	s.print("AH00558: httpd: Could not reliably determine the server's fully qualified domain name, using %s. Set "+
		"the 'ServerName' directive globally to suppress this message", own)
	ln, err := s.env.Net.Listen("tcp", ":80")
	if err != nil {
		s.print("(%d)%s: AH00072: make_sock: could not bind to address 0.0.0.0:80", errno(err), reason(err))
		s.print("no listening sockets available, shutting down")
		s.print("AH00015: Unable to open logs")
		return kit.Exit(1)
	}
	if err := s.env.WriteFile(pidFile, fmt.Appendln(nil, s.env.PID), 0o644); err != nil {
		ln.Close()
		s.log("core:error", "(%d)%s: AH00099: could not create %s", errno(err), reason(err), pidFile)
		s.log("core:error", "AH00100: httpd: could not log pid to file %s", pidFile)
		return kit.Exit(1)
	}
	srv := &http.Server{
		Handler:     http.HandlerFunc(s.handle),
		ErrorLog:    log.New(io.Discard, "", 0), // What clients do wrong is not worth a line.
		IdleTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	s.log("mpm_event:notice", "AH00489: Apache/%s (Unix) configured -- resuming normal operations", Version)
	s.log("core:notice", "AH00094: Command line: 'httpd -D FOREGROUND'")
	err = s.obey(ctx, signals, srv)
	srv.Close()
	<-ended
	_ = s.env.FS.Remove(pidFile)
	return err
}

// obey does what signals say, until one of them says stop.
func (s *server) obey(ctx context.Context, signals <-chan syscall.Signal, srv *http.Server) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-signals:
			switch sig {
			case syscall.SIGTERM, syscall.SIGINT:
				s.log("mpm_event:notice", "AH00491: caught SIGTERM, shutting down")
				return nil
			case syscall.SIGWINCH: // How the image is stopped: requests are answered first.
				s.log("mpm_event:notice", "AH00492: caught SIGWINCH, shutting down gracefully")
				if err := srv.Shutdown(ctx); err != nil {
					return err
				}
				return nil
			case syscall.SIGHUP:
				s.log("mpm_event:notice", "AH00494: SIGHUP received.  Attempting to restart")
			case syscall.SIGUSR1:
				s.log("mpm_event:notice", "AH00493: SIGUSR1 received.  Doing graceful restart")
			}
		}
	}
}

// print writes a line to the standard error stream, which is where the image logs errors.
func (s *server) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.env.Stderr, format+"\n", args...)
}

// log writes a line to the error log.
func (s *server) log(module, format string, args ...any) {
	s.print("[%s] [%s] [pid %d:tid %d] %s", time.Now().UTC().Format("Mon Jan 02 15:04:05.000000 2006"), module,
		s.env.PID, s.env.PID, fmt.Sprintf(format, args...))
}

// logAccess writes a request to the access log, in the common log format.
func (s *server) logAccess(r *http.Request, status int, bytes int64) {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	user, _, _ := r.BasicAuth()
	if user == "" {
		user = "-"
	}
	size := "-"
	if bytes > 0 {
		size = fmt.Sprint(bytes)
	}
	line := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.Method + " " + r.RequestURI + " " + r.Proto)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.env.Stdout, "%s - %s [%s] \"%s\" %d %s\n",
		client, user, time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), line, status, size)
}

func errno(err error) int {
	n, _ := errors.AsType[syscall.Errno](err)
	return int(n)
}

// reason is an error's text as the C library writes it.
func reason(err error) string {
	n, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := n.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
