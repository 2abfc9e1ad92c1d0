package mongo

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/server"
)

// abort is what a failed write of the journal does to a server.
func (d *daemon) abort(err error) error {
	errno := syscall.EIO
	errors.As(err, &errno)
	text := strings.ToUpper(errno.Error()[:1]) + errno.Error()[1:]
	d.log.Error(mlog.Storage, 22435, "WTJournalFlusher", "WiredTiger error", bson.D{
		{Key: "error", Value: int(errno)},
		{Key: "message", Value: fmt.Sprintf(
			"[%d:0] WT_SESSION.log_flush: __posix_file_write: %s: handle-write: pwrite: %s", time.Now().Unix(),
			"journal", text)},
	})
	d.log.Error(mlog.Storage, 22435, "WTJournalFlusher", "WiredTiger error", bson.D{
		{Key: "error", Value: -31804}, {
			Key:   "message",
			Value: "WT_SESSION.log_flush: the process must exit and restart: WT_PANIC: WiredTiger library panic",
		},
	})
	d.fatal(50853, "src/mongo/db/storage/wiredtiger/wiredtiger_util.cpp", 446)
	return errExit{exitAbrupt}
}

func (d *daemon) fatal(id int, file string, line int) {
	d.log.Fatal(mlog.Default, 23089, "initandlisten", "Fatal assertion",
		bson.D{{Key: "msgid", Value: id}, {Key: "file", Value: file}, {Key: "line", Value: line}})
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
		d.log.Fatal(mlog.Control, 20574, "main", "Error during global initialization",
			bson.D{{Key: "error", Value: bson.D{
				{Key: "code", Value: 38},
				{Key: "codeName", Value: "FileNotOpen"},
				{Key: "errmsg", Value: fmt.Sprintf("Failed to open %s", name)},
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
		d.log.Error(mlog.Network, e.id, "main", e.msg,
			bson.D{{Key: "keyFile", Value: e.file}, {Key: "error", Value: e.reason}})
		reason = e.fallback
	}
	d.log.Fatal(mlog.Control, 20574, "main", "Error during global initialization", bson.D{{Key: "error", Value: bson.D{
		{Key: "code", Value: 140}, {Key: "codeName", Value: "InvalidSSLConfiguration"}, {Key: "errmsg", Value: reason},
	}}})
	return errExit{1}
}

func (d *daemon) logStart() {
	d.info(mlog.Control, 23285, "main", "Automatically disabling TLS 1.0, to force-enable TLS 1.0 specify "+
		"--sslDisabledProtocols 'none'", nil)
	d.info(mlog.Network, 4648601, "main",
		"Implicit TCP FastOpen unavailable. If TCP FastOpen is required, set tcpFastOpenServer, tcpFastOpenClient, "+
			"and tcpFastOpenQueueSize.", nil)
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
		{Key: "environment", Value: bson.D{
			{Key: "distmod", Value: "ubuntu1804"},
			{Key: "distarch", Value: arch},
			{Key: "target_arch", Value: arch},
		}},
	}}})
	d.info(mlog.Control, 51765, "initandlisten", "Operating System",
		bson.D{{Key: "os", Value: bson.D{{Key: "name", Value: "Ubuntu"}, {Key: "version", Value: "18.04"}}}})
	d.info(mlog.Control, 21951, "initandlisten", "Options set by command line",
		bson.D{{Key: "options", Value: d.settings.doc()}})
}

func (d *daemon) logSignal(sig syscall.Signal) {
	const thread = "SignalHandler"
	text := sig.String()
	d.info(mlog.Control, 23377, thread, "Received signal",
		bson.D{{Key: "signal", Value: int(sig)}, {Key: "error", Value: strings.ToUpper(text[:1]) + text[1:]}})
	d.info(mlog.Control, 23378, thread, "Signal was sent by kill(2)",
		bson.D{{Key: "pid", Value: 0}, {Key: "uid", Value: 0}})
	d.info(mlog.Control, 23381, thread, "will terminate after current cmd ends", nil)
}

func (d *daemon) logStop() {
	const thread = "SignalHandler"
	d.info(mlog.Repl, 4784900, thread, "Stepping down the ReplicationCoordinator for shutdown",
		bson.D{{Key: "waitTimeMillis", Value: 10000}})
	d.info(mlog.Command, 4784901, thread, "Shutting down the MirrorMaestro", nil)
	d.info(mlog.Sharding, 4784902, thread, "Shutting down the WaitForMajorityService", nil)
	d.info(mlog.Control, 4784903, thread, "Shutting down the LogicalSessionCache", nil)
	d.info(mlog.Network, 20562, thread, "Shutdown: going to close listening sockets", nil)
	d.info(mlog.Default, 4784912, thread, "Killing all operations for shutdown", nil)
	d.info(mlog.Storage, 22317, thread, "WiredTigerKVEngine shutting down", nil)
	d.info(mlog.Storage, 22279, thread, "shutdown: removing fs lock...", nil)
	d.info(mlog.FTDC, 4784926, thread, "Shutting down full-time data capture", nil)
}
