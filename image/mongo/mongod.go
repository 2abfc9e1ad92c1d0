package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"sync"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/server"
	"github.com/aiopslab/aiopslab/kit"
)

// The exit codes of mongod.
const (
	exitOptions  = 2
	exitAbrupt   = 14
	exitListener = 48
	exitUncaught = 100
	exitAborted  = kit.ExitSignal + int(syscall.SIGABRT)
)

// errExit ends mongod with a code after what it has logged.
type errExit struct{ code int }

func (e errExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// Ends of a server that gets no chance to clean up.
var (
	errKilled   = errors.New("killed")
	errNoMemory = errors.New("out of memory")
)

// Mongod is the server.
func Mongod(ctx context.Context, env *kit.Env) error {
	for _, arg := range env.Args[1:] {
		switch arg {
		case "--version":
			fmt.Fprint(env.Stdout, versionText)
			return nil
		case "--help", "-h":
			fmt.Fprint(env.Stdout, usage)
			return nil
		}
	}
	o, err := parseOptions(env)
	if err != nil {
		fmt.Fprintf(env.Stderr, "%v\ntry '%s --help' for more information\n", err, path.Base(env.Args[0]))
		return kit.Exit(exitOptions)
	}
	d := &daemon{env: env, settings: o, failed: make(chan error, 1)}
	err = d.run(ctx)
	var exit errExit
	switch {
	case errors.As(err, &exit):
		return kit.Exit(exit.code)
	case err == errKilled:
		return ctx.Err()
	}
	return err
}

const versionText = "db version v" + server.Version + "\nBuild Info: {\n    \"version\": \"" + server.Version +
	"\",\n    \"gitVersion\": \"" + server.GitVersion +
	"\",\n    \"openSSLVersion\": \"OpenSSL 1.1.1  11 Sep 2018\",\n    \"modules\": [],\n    \"allocator\": " +
	"\"tcmalloc\",\n    \"environment\": {\n        \"distmod\": \"ubuntu1804\",\n        \"distarch\": " +
	"\"x86_64\",\n        \"target_arch\": \"x86_64\"\n    }\n}\n"

const usage = `Options:

General options:
  --config arg, -f arg            Configuration file specifying additional options
  --version                       Show version information
  --help                          Show this usage information
  --port arg                      Port number (27017 by default)
  --bind_ip arg                   Comma separated list of addresses to listen on (127.0.0.1 by default)
  --bind_ip_all                   Bind to all addresses
  --dbpath arg                    Directory for data files (/data/db by default)
  --logpath arg                   File to log to instead of standard output
  --auth                          Run with security
  --setParameter name=value       Set a configurable parameter

TLS options:
  --tlsMode arg                   disabled, allowTLS, preferTLS or requireTLS
  --tlsCertificateKeyFile arg     Certificate and key file
  --tlsCAFile arg                 Certificate authority file
  --tlsAllowConnectionsWithoutCertificates
                                  Allow clients to connect without certificates
`

// daemon is a running mongod.
type daemon struct {
	env      *kit.Env
	settings settings
	log      *mlog.Log
	dir      string
	port     int

	mu     sync.Mutex
	booked int64 // bytes of memory stated for the cache
	failed chan error
}

// run serves until a signal, or the context, ends it.
func (d *daemon) run(ctx context.Context) error {
	d.dir = d.env.Path(d.settings.text("storage.dbPath", "/data/db"))
	d.port, _ = strconv.Atoi(d.settings.text("net.port", "27017"))
	closeLog, err := d.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	signals := d.env.Notify()
	tlsConfig, err := d.settings.serverTLS(d.env)
	if err != nil {
		return d.tlsFailed(err)
	}
	d.logStart()
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	eng, err := d.open()
	if err != nil {
		return err
	}
	defer d.forgetMemory()
	srv := server.New(server.Config{
		Env: d.env, Engine: eng, Log: d.log, Auth: d.settings["security.authorization"] == "enabled",
		TLS: tlsConfig, TLSMode: d.settings.text("net.tls.mode", "disabled"),
		Port: d.port, Args: d.env.Args, Parsed: d.settings.doc(), DBPath: d.dir,
	})
	listeners, err := d.listen()
	if err != nil {
		eng.Close()
		return err
	}
	err = d.serve(ctx, srv, listeners, signals)
	return d.stop(eng, lock, err)
}

// serve takes connections until it is told to stop or cannot go on.
func (d *daemon) serve(ctx context.Context, srv *server.Server, listeners []net.Listener,
	signals <-chan syscall.Signal,
) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	for _, ln := range listeners {
		work.Go(func() { srv.Serve(inner, ln) })
	}
	work.Go(func() { srv.Guard(func() { srv.Maintain(inner) }) })
	ssl := "off"
	if srv.TLS != nil {
		ssl = "on"
	}
	d.info(mlog.Network, 23016, "listener", "Waiting for connections",
		bson.D{{Key: "port", Value: d.port}, {Key: "ssl", Value: ssl}})
	err := d.wait(ctx, srv, signals)
	cancel()
	for _, ln := range listeners {
		ln.Close()
	}
	srv.Close()
	work.Wait()
	return err
}

// wait returns when the server has to end: nil if it may do so in peace.
func (d *daemon) wait(ctx context.Context, srv *server.Server, signals <-chan syscall.Signal) error {
	for {
		select {
		case <-ctx.Done():
			var killed kit.Killed
			if errors.As(context.Cause(ctx), &killed) && killed.Signal == syscall.SIGKILL {
				return errKilled
			}
			d.logSignal(syscall.SIGTERM)
			return nil
		case err := <-srv.Failed():
			return err
		case err := <-d.failed:
			return err
		case sig := <-signals:
			switch sig {
			case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT:
				d.logSignal(sig)
				return nil
			}
		}
	}
}

// stop ends the server: cleanly, or at once if its journal failed.
func (d *daemon) stop(eng *engine.Engine, lock kit.File, err error) error {
	if err == errKilled {
		eng.Close() // What a kernel does to the files of the dead.
		return err
	}
	if err == errNoMemory {
		eng.Close()
		d.log.Fatal(mlog.Control, 4757800, "conn", "Writing fatal message",
			bson.D{{Key: "message", Value: "Out of memory\n"}})
		return errExit{exitAborted}
	}
	if p, ok := errors.AsType[*server.PanicError](err); ok {
		eng.Close()
		fmt.Fprintf(d.env.Stderr, "%v\n\n%s", p, p.Stack)
		return errExit{kit.ExitPanic}
	}
	if err == nil {
		d.logStop()
		err = eng.Checkpoint(d.env, d.dir)
		if cerr := eng.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return d.abort(err)
	}
	if err := lock.Truncate(0); err != nil {
		return d.abort(err)
	}
	d.info(mlog.Control, 20565, "SignalHandler", "Now exiting", nil)
	d.info(mlog.Control, 23138, "SignalHandler", "Shutting down", bson.D{{Key: "exitCode", Value: 0}})
	return nil
}
