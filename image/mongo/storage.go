package mongo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/server"
	"github.com/aiopslab/aiopslab/kit"
)

// lockFile holds the process ID of the server that uses the directory. It is empty after a clean
// shutdown.
const lockFile = "mongod.lock"

// lock takes the data directory.
func (d *daemon) lock() (kit.File, error) {
	if fi, err := d.env.FS.Stat(d.dir); err != nil || !fi.IsDir() {
		return nil, d.refuse("NonExistentPath: Data directory %s not found. Create the missing directory or specify "+
			"another path using (1) the --dbpath command line option, or (2) by adding the 'storage.dbPath' option "+
			"in the configuration file.", d.dir)
	}
	name := d.dir + "/" + lockFile
	f, err := d.env.FS.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, d.refuse("IllegalOperation: Attempted to create a lock file on a read-only directory: %s", d.dir)
	}
	if err != nil {
		return nil, d.refuse("DBPathInUse: Unable to create/open the lock file: %s (%s). Ensure the user executing "+
			"mongod is the owner of the lock file and has the appropriate permissions. Also make sure that another "+
			"mongod instance is not already running on the %s directory", name, reason(err), d.dir)
	}
	if l, ok := f.(kit.FileLocker); ok {
		if err := l.TryLock(); err != nil {
			f.Close()
			return nil, d.refuse("DBPathInUse: Unable to lock the lock file: %s (%s). Another mongod instance is "+
				"already running on the %s directory", name, reason(err), d.dir)
		}
	}
	old, err := io.ReadAll(f)
	if err == nil && len(old) > 0 {
		d.log.Warn(mlog.Storage, 22271, "initandlisten", "Detected unclean shutdown - Lock file is not empty",
			bson.D{{Key: "lockFile", Value: name}})
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", d.env.PID), 0)
	}
	if err != nil {
		f.Close()
		return nil, d.refuse("FileStreamFailed: Unable to write to the lock file: %s (%s)", name, reason(err))
	}
	return f, nil
}

// reason is the kernel's part of an error.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// refuse logs why the server does not start.
func (d *daemon) refuse(format string, args ...any) error {
	d.log.Error(mlog.Storage, 20557, "initandlisten", "DBException in initAndListen, terminating",
		bson.D{{Key: "error", Value: fmt.Sprintf(format, args...)}})
	d.info(mlog.Control, 20565, "initandlisten", "Now exiting", nil)
	d.info(mlog.Control, 23138, "initandlisten", "Shutting down", bson.D{{Key: "exitCode", Value: exitUncaught}})
	return errExit{exitUncaught}
}

// storageFile tells which storage engine the directory's files are of.
const storageFile = "storage.bson"

// open reads the databases.
func (d *daemon) open() (*engine.Engine, error) {
	const thread = "initandlisten"
	if _, err := d.env.FS.Stat(d.dir + "/" + storageFile); err == nil {
		d.info(mlog.Storage, 22270, thread, "Storage engine to use detected by data files",
			bson.D{{Key: "dbpath", Value: d.dir}, {Key: "storageEngine", Value: "wiredTiger"}})
	}
	cache := server.CacheSize(d.env.Memory.Info())
	d.info(mlog.Storage, 22315, thread, "Opening WiredTiger",
		bson.D{{Key: "config", Value: fmt.Sprintf(
			"create,cache_size=%dM,session_max=33000,log=(enabled=true,archive=true,path=journal,compressor=snappy)",
			cache>>20)}})
	eng, err := engine.Open(d.env, engine.Options{Dir: d.dir, OnSize: func(bytes int64) {
		d.stateMemory(min(bytes, cache))
	}})
	if errors.Is(err, engine.ErrCorrupt) {
		d.log.Error(mlog.Storage, 22435, thread, "WiredTiger error",
			bson.D{{Key: "error", Value: -31802}, {Key: "message", Value: err.Error()}})
		d.fatal(28595, "src/mongo/db/storage/wiredtiger/wiredtiger_kv_engine.cpp", 1157)
		return nil, errExit{exitAbrupt}
	}
	if err == nil {
		err = d.writeStorageFile()
	}
	if err != nil {
		return nil, d.abort(err)
	}
	d.info(mlog.Storage, 4795906, thread, "WiredTiger opened", bson.D{{Key: "durationMillis", Value: 1}})
	d.info(mlog.Storage, 22262, thread, "Timestamp monitor starting", nil)
	if d.settings["security.authorization"] != "enabled" {
		d.log.StartupWarning(mlog.Control, 22120,
			"Access control is not enabled for the database. Read and write access to data and configuration "+
				"is unrestricted")
	}
	d.info(mlog.FTDC, 20625, thread, "Initializing full-time diagnostic data capture",
		bson.D{{Key: "dataDirectory", Value: d.dir + "/diagnostic.data"}})
	return eng, nil
}

func (d *daemon) writeStorageFile() error {
	name := d.dir + "/" + storageFile
	if _, err := d.env.FS.Stat(name); err == nil {
		return nil
	}
	data, err := bson.Marshal(bson.D{{Key: "storage", Value: bson.D{{Key: "engine", Value: "wiredTiger"}}}})
	if err != nil {
		return err
	}
	return d.env.WriteFile(name, data, 0o600)
}

// stateMemory states what the cache holds. If that is too much, the kernel kills the server. If the
// kernel refuses, the server ends itself.
func (d *daemon) stateMemory(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.env.Memory.Add(bytes - d.booked)
	if err == nil {
		d.booked = bytes
	}
	if _, refused := errors.AsType[syscall.Errno](err); refused {
		select {
		case d.failed <- errNoMemory:
		default:
		}
	}
}

// forgetMemory gives the cache back.
func (d *daemon) forgetMemory() { d.stateMemory(0) }
