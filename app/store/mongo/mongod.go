package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/app/kit"
	"github.com/aiopslab/aiopslab/app/store/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/app/store/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/app/store/mongo/internal/server"
)

// The exit codes of mongod.
const (
	exitOptions  = 2
	exitAbrupt   = 14
	exitListener = 48
	exitUncaught = 100
)

// errExit ends mongod with a code after what it has logged.
type errExit struct{ code int }

func (e errExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// errKilled is the end of a server that gets no chance to clean up.
var errKilled = errors.New("killed")

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
	d := &daemon{env: env, settings: o}
	err = d.run(ctx)
	var exit errExit
	switch {
	case errors.As(err, &exit):
		return kit.Exit(exit.code)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

const versionText = "db version v" + server.Version + "\nBuild Info: {\n    \"version\": \"" + server.Version + "\",\n    \"gitVersion\": \"" + server.GitVersion + "\",\n    \"openSSLVersion\": \"OpenSSL 1.1.1  11 Sep 2018\",\n    \"modules\": [],\n    \"allocator\": \"tcmalloc\",\n    \"environment\": {\n        \"distmod\": \"ubuntu1804\",\n        \"distarch\": \"x86_64\",\n        \"target_arch\": \"x86_64\"\n    }\n}\n"

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
func (d *daemon) serve(ctx context.Context, srv *server.Server, listeners []net.Listener, signals <-chan syscall.Signal) error {
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
	d.info(mlog.Network, 23016, "listener", "Waiting for connections", bson.D{{Key: "port", Value: d.port}, {Key: "ssl", Value: ssl}})
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

// abort is what a failed write of the journal does to a server.
func (d *daemon) abort(err error) error {
	errno := syscall.EIO
	errors.As(err, &errno)
	text := strings.ToUpper(errno.Error()[:1]) + errno.Error()[1:]
	d.log.Error(mlog.Storage, 22435, "WTJournalFlusher", "WiredTiger error", bson.D{
		{Key: "error", Value: int(errno)},
		{Key: "message", Value: fmt.Sprintf("[%d:0] WT_SESSION.log_flush: __posix_file_write: %s: handle-write: pwrite: %s", time.Now().Unix(), "journal", text)},
	})
	d.log.Error(mlog.Storage, 22435, "WTJournalFlusher", "WiredTiger error", bson.D{
		{Key: "error", Value: -31804}, {Key: "message", Value: "WT_SESSION.log_flush: the process must exit and restart: WT_PANIC: WiredTiger library panic"},
	})
	d.fatal(50853, "src/mongo/db/storage/wiredtiger/wiredtiger_util.cpp", 446)
	return errExit{exitAbrupt}
}

func (d *daemon) fatal(id int, file string, line int) {
	d.log.Fatal(mlog.Default, 23089, "initandlisten", "Fatal assertion", bson.D{{Key: "msgid", Value: id}, {Key: "file", Value: file}, {Key: "line", Value: line}})
	d.log.Fatal(mlog.Default, 23090, "initandlisten", "\n\n***aborting after fassert() failure\n\n", nil)
}

func (d *daemon) info(component string, id int, ctx, msg string, attr bson.D) {
	d.log.Info(component, id, ctx, msg, attr)
}

// openLog opens the log file, if there is to be one.
func (d *daemon) openLog() (closeLog func(), err error) {
	name := d.settings["systemLog.path"]
	if name == "" {
		d.log = mlog.New(d.env.Stdout)
		return func() {}, nil
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !d.settings.is("systemLog.logAppend") {
		flag |= os.O_TRUNC
	}
	f, err := d.env.FS.OpenFile(d.env.Path(name), flag, 0o600)
	if err != nil {
		d.log = mlog.New(d.env.Stdout)
		d.log.Fatal(mlog.Control, 20574, "main", "Error during global initialization", bson.D{{Key: "error", Value: bson.D{
			{Key: "code", Value: 38}, {Key: "codeName", Value: "FileNotOpen"}, {Key: "errmsg", Value: fmt.Sprintf("Failed to open %s", name)},
		}}})
		return nil, errExit{1}
	}
	d.log = mlog.New(f)
	return func() { f.Close() }, nil
}

func (d *daemon) tlsFailed(err error) error {
	reason := err.Error()
	var e *tlsError
	if errors.As(err, &e) {
		d.log.Error(mlog.Network, e.id, "main", e.msg, bson.D{{Key: "keyFile", Value: e.file}, {Key: "error", Value: e.reason}})
		reason = e.fallback
	}
	d.log.Fatal(mlog.Control, 20574, "main", "Error during global initialization", bson.D{{Key: "error", Value: bson.D{
		{Key: "code", Value: 140}, {Key: "codeName", Value: "InvalidSSLConfiguration"}, {Key: "errmsg", Value: reason},
	}}})
	return errExit{1}
}

func (d *daemon) logStart() {
	d.info(mlog.Control, 23285, "main", "Automatically disabling TLS 1.0, to force-enable TLS 1.0 specify --sslDisabledProtocols 'none'", nil)
	d.info(mlog.Network, 4648601, "main", "Implicit TCP FastOpen unavailable. If TCP FastOpen is required, set tcpFastOpenServer, tcpFastOpenClient, and tcpFastOpenQueueSize.", nil)
	d.info(mlog.Storage, 4615611, "initandlisten", "MongoDB starting", bson.D{
		{Key: "pid", Value: d.env.PID},
		{Key: "port", Value: d.port},
		{Key: "dbPath", Value: d.dir},
		{Key: "architecture", Value: "64-bit"},
		{Key: "host", Value: d.env.Hostname},
	})
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	d.info(mlog.Control, 23403, "initandlisten", "Build Info", bson.D{{Key: "buildInfo", Value: bson.D{
		{Key: "version", Value: server.Version},
		{Key: "gitVersion", Value: server.GitVersion},
		{Key: "openSSLVersion", Value: "OpenSSL 1.1.1  11 Sep 2018"},
		{Key: "modules", Value: bson.A{}},
		{Key: "allocator", Value: "tcmalloc"},
		{Key: "environment", Value: bson.D{{Key: "distmod", Value: "ubuntu1804"}, {Key: "distarch", Value: arch}, {Key: "target_arch", Value: arch}}},
	}}})
	d.info(mlog.Control, 51765, "initandlisten", "Operating System", bson.D{{Key: "os", Value: bson.D{{Key: "name", Value: "Ubuntu"}, {Key: "version", Value: "18.04"}}}})
	d.info(mlog.Control, 21951, "initandlisten", "Options set by command line", bson.D{{Key: "options", Value: d.settings.doc()}})
}

func (d *daemon) logSignal(sig syscall.Signal) {
	const thread = "SignalHandler"
	text := sig.String()
	d.info(mlog.Control, 23377, thread, "Received signal", bson.D{{Key: "signal", Value: int(sig)}, {Key: "error", Value: strings.ToUpper(text[:1]) + text[1:]}})
	d.info(mlog.Control, 23378, thread, "Signal was sent by kill(2)", bson.D{{Key: "pid", Value: 0}, {Key: "uid", Value: 0}})
	d.info(mlog.Control, 23381, thread, "will terminate after current cmd ends", nil)
}

func (d *daemon) logStop() {
	const thread = "SignalHandler"
	d.info(mlog.Repl, 4784900, thread, "Stepping down the ReplicationCoordinator for shutdown", bson.D{{Key: "waitTimeMillis", Value: 10000}})
	d.info(mlog.Command, 4784901, thread, "Shutting down the MirrorMaestro", nil)
	d.info(mlog.Sharding, 4784902, thread, "Shutting down the WaitForMajorityService", nil)
	d.info(mlog.Control, 4784903, thread, "Shutting down the LogicalSessionCache", nil)
	d.info(mlog.Network, 20562, thread, "Shutdown: going to close listening sockets", nil)
	d.info(mlog.Default, 4784912, thread, "Killing all operations for shutdown", nil)
	d.info(mlog.Storage, 22317, thread, "WiredTigerKVEngine shutting down", nil)
	d.info(mlog.Storage, 22279, thread, "shutdown: removing fs lock...", nil)
	d.info(mlog.FTDC, 4784926, thread, "Shutting down full-time data capture", nil)
}

// listen opens the sockets.
func (d *daemon) listen() ([]net.Listener, error) {
	hosts := strings.Split(d.settings.text("net.bindIp", "127.0.0.1"), ",")
	if d.settings.is("net.bindIpAll") {
		hosts = []string{"0.0.0.0"}
	}
	var list []net.Listener
	for _, host := range hosts {
		host = strings.TrimSpace(host)
		switch host {
		case "*":
			host = "0.0.0.0"
		case "localhost":
			host = "127.0.0.1"
		}
		ln, err := d.env.Net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(d.port)))
		if err != nil {
			for _, l := range list {
				l.Close()
			}
			return nil, d.listenFailed(err)
		}
		list = append(list, ln)
		d.info(mlog.Network, 23015, "listener", "Listening on", bson.D{{Key: "address", Value: host}})
	}
	return list, nil
}

func (d *daemon) listenFailed(err error) error {
	text := err.Error()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text = strings.ToUpper(errno.Error()[:1]) + errno.Error()[1:]
	}
	d.log.Error(mlog.Control, 20568, "initandlisten", "Error setting up listener", bson.D{{Key: "error", Value: bson.D{
		{Key: "code", Value: 9001}, {Key: "codeName", Value: "SocketException"}, {Key: "errmsg", Value: text},
	}}})
	d.info(mlog.Control, 23138, "initandlisten", "Shutting down", bson.D{{Key: "exitCode", Value: exitListener}})
	return errExit{exitListener}
}
