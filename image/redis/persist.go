package redis

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

func stringReader(s string) io.Reader { return strings.NewReader(s) }

// replay gives the commands in an append-only file, and returns how many bytes of it are good.
func replay(r *bufio.Reader, give func(db int, args ...string)) (good int64, err error) {
	db := 0
	var queued [][]string
	inside := false // a transaction
	end := int64(0)
	for {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			if inside {
				return good, io.ErrUnexpectedEOF
			}
			return good, nil
		}
		args, err := readCommand(r, free)
		if err != nil {
			return good, err
		}
		if len(args) == 0 {
			return good, protocolError("empty command")
		}
		end += int64(len(encode(args...)))
		args[0] = strings.ToUpper(args[0])
		switch {
		case args[0] == "SELECT" && len(args) == 2:
			if db, err = strconv.Atoi(args[1]); err != nil {
				return good, protocolError("bad database")
			}
		case args[0] == "MULTI":
			inside = true
		case args[0] == "EXEC":
			for _, q := range queued {
				give(db, q...)
			}
			queued, inside = nil, false
		case inside:
			queued = append(queued, args)
		default:
			give(db, args...)
		}
		if !inside {
			good = end
		}
	}
}

// give executes a command on the data and keeps the ledger.
func (s *instance) give(db int, args ...string) {
	result := s.data.do(db, args...)
	if len(result) > 0 && result[0] != failure {
		s.account(db, args, time.Now())
	}
}

// errFatal is an error that ends the server, already logged.
var errFatal = kit.ExitError(1)

// load reads the data there is.
func (s *instance) load() error {
	start := time.Now()
	if s.config.bool("appendonly") {
		return s.loadAOF(start)
	}
	file := s.path("dbfilename")
	f, err := s.env.FS.OpenFile(file, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.log(warning, "Fatal error loading the DB: %s. Exiting.", errnoText(err))
		return errFatal
	}
	defer f.Close()
	info, err := readRDB(f, start, s.give)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = said("Unexpected EOF reading RDB file")
		}
		s.log(warning, "%s", err)
		s.log(warning, "Fatal error loading the DB: Invalid argument. Exiting.")
		return errFatal
	}
	s.log(notice, "Loading RDB produced by version %s", info.version)
	s.log(notice, "RDB age %d seconds", int64(start.Sub(info.created)/time.Second))
	s.log(notice, "RDB memory usage when created %.2f Mb", float64(info.memory)/(1<<20))
	s.log(notice, "DB loaded from disk: %.3f seconds", time.Since(start).Seconds())
	return nil
}

func (s *instance) loadAOF(start time.Time) error {
	file := s.path("appendfilename")
	f, err := s.env.FS.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.log(warning, "Fatal error: can't open the append log file for reading: %s", errnoText(err))
		return errFatal
	}
	defer f.Close()
	good, err := replay(bufio.NewReader(f), s.give)
	var bad protocolError
	switch {
	case err == nil:
	case errors.As(err, &bad):
		s.log(warning, "Bad file format reading the append only file: make a backup of your AOF file, then use "+
			"./redis-check-aof --fix <filename>")
		return errFatal
	case !s.config.bool("aof-load-truncated"):
		s.log(warning, "Unexpected end of file reading the append only file. You can: 1) Make a backup of your AOF "+
			"file, then use ./redis-check-aof --fix <filename>. 2) Alternatively you can set the "+
			"'aof-load-truncated' configuration option to yes and restart the server.")
		return errFatal
	default:
		s.log(warning, "!!! Warning: short read while loading the AOF file !!!")
		s.log(warning, "!!! Truncating the AOF at offset %d !!!", good)
		if err := f.Truncate(good); err != nil {
			s.log(warning, "Error truncating the AOF file: %s", errnoText(err))
			return errFatal
		}
		s.log(warning, "AOF loaded anyway because aof-load-truncated is enabled")
	}
	s.aof.size, s.aof.base = good, good
	s.log(notice, "DB loaded from append only file: %.3f seconds", time.Since(start).Seconds())
	return nil
}

// path is the file a parameter names, in the server's directory.
func (s *instance) path(parameter string) string {
	return path.Join(s.config.values["dir"], s.config.values[parameter])
}

// writeFile replaces a file in one step.
func (s *instance) writeFile(file string, write func(io.Writer) error) error {
	temp := path.Join(path.Dir(file), fmt.Sprintf("temp-%d.rdb", s.env.PID))
	f, err := s.env.FS.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.env.FS.Rename(temp, file)
	}
	if err != nil {
		s.env.FS.Remove(temp)
	}
	return err
}

// save writes a snapshot. As in a real one, background saves are done by a process of their own, of
// which only the log tells.
func (s *instance) save(background bool) error {
	now := time.Now()
	pid, role := s.env.PID, byte('M')
	if background {
		s.lastPID = max(s.lastPID, s.env.PID+14) + 1
		pid, role = s.lastPID, 'C'
		s.log(notice, "Background saving started by pid %d", pid)
	}
	err := s.writeFile(s.path("dbfilename"), func(w io.Writer) error { return s.data.writeRDB(w, now) })
	s.saveFailed = err != nil
	if err != nil {
		s.logAs(pid, role, warning, "Failed opening the RDB file %s (in server root dir %s) for saving: %s",
			s.config.values["dbfilename"], s.config.values["dir"], errnoText(err))
		if background {
			s.log(warning, "Background saving error")
		}
		return err
	}
	s.logAs(pid, role, notice, "DB saved on disk")
	if background {
		s.log(notice, "Background saving terminated with success")
	}
	s.lastSave, s.dirty, s.saves = now, 0, s.saves+1
	return nil
}

// saveIfDue saves when a save point is reached. After a failure it waits a while.
func (s *instance) saveIfDue(now time.Time) {
	if s.saveFailed && now.Sub(s.lastTry) < 5*time.Second {
		return
	}
	for _, p := range s.config.savePoints() {
		if s.dirty >= p.changes && now.Sub(s.lastSave) > p.after {
			s.log(notice, "%d changes in %d seconds. Saving...", p.changes, int64(p.after/time.Second))
			s.lastTry = now
			s.save(true)
			return
		}
	}
}

// aof is the append-only file.
type aof struct {
	file    kit.File // nil if there is none
	db      int      // of the last command; -1 if unknown
	pending []byte   // not written yet
	size    int64
	base    int64 // size after the last rewrite
	dirty   bool  // not synced
	err     error // of the last write
	syncErr error // of the last sync
}

func (s *instance) openAOF() error {
	f, err := s.env.FS.OpenFile(s.path("appendfilename"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		s.log(warning, "Can't open the append-only file: %s", errnoText(err))
		return err
	}
	s.aof.file, s.aof.db = f, -1
	return nil
}

// propagate appends a change to the file.
func (s *instance) propagate(db int, commands ...[]string) {
	s.dirty += int64(len(commands))
	if s.aof.file == nil || len(commands) == 0 {
		return
	}
	var b []byte
	if s.aof.db != db {
		b = encode("SELECT", strconv.Itoa(db))
		s.aof.db = db
	}
	if len(commands) > 1 {
		b = append(b, encode("MULTI")...)
	}
	for _, c := range commands {
		b = append(b, encode(c...)...)
	}
	if len(commands) > 1 {
		b = append(b, encode("EXEC")...)
	}
	s.aof.pending = append(s.aof.pending, b...)
	s.writeAOF()
}

// writeAOF writes what is pending. What cannot be written stays, and keeps clients from changing
// more.
func (s *instance) writeAOF() {
	always := s.config.values["appendfsync"] == "always"
	n, err := s.aof.file.Write(s.aof.pending)
	if err == nil && always {
		err = s.aof.file.Sync()
	}
	if err != nil {
		if s.aof.err == nil {
			s.log(warning, "Error writing to the AOF file: %s", errnoText(err))
		}
		if n > 0 { // Half a command would end the file for good.
			s.aof.file.Truncate(s.aof.size)
		}
		s.aof.err = err
		if always { // The client has been promised that its change is on disk.
			s.log(warning, "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...")
			s.fail(1)
		}
		return
	}
	if s.aof.err != nil {
		s.log(warning, "AOF write error looks solved, Redis can write again.")
	}
	s.aof.size += int64(n)
	s.aof.pending, s.aof.dirty, s.aof.err = s.aof.pending[:0], true, nil
}

// retryAOF writes what could not be written before.
func (s *instance) retryAOF() {
	if s.aof.file != nil && len(s.aof.pending) > 0 {
		s.writeAOF()
	}
}

// syncAOF does once a second what everysec means.
func (s *instance) syncAOF() {
	if s.aof.file == nil || !s.aof.dirty || s.config.values["appendfsync"] != "everysec" {
		return
	}
	if s.aof.syncErr = s.aof.file.Sync(); s.aof.syncErr != nil {
		s.log(warning, "Fail to fsync the AOF file: %s", errnoText(s.aof.syncErr))
		return
	}
	s.aof.dirty = false
	grown := s.config.int("auto-aof-rewrite-percentage")
	if s.aof.size > s.config.int("auto-aof-rewrite-min-size") && grown > 0 && s.aof.size > s.aof.base*(100+grown)/100 {
		s.log(notice, "Starting automatic rewriting of AOF on %d%% growth",
			(s.aof.size-s.aof.base)*100/max(s.aof.base, 1))
		s.rewriteAOF()
	}
}

// rewriteAOF makes the file as short as it can be.
func (s *instance) rewriteAOF() error {
	s.lastPID = max(s.lastPID, s.env.PID+14) + 1
	s.log(notice, "Background append only file rewriting started by pid %d", s.lastPID)
	file := s.path("appendfilename")
	var size int64
	err := s.writeFile(file, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		err := s.data.writeCommands(func(p []byte) {
			n, _ := out.Write(p)
			size += int64(n)
		})
		return errors.Join(err, out.Flush())
	})
	if err != nil {
		s.log(warning, "Background AOF rewrite terminated with error: %s", errnoText(err))
		return err
	}
	s.log(notice, "Background AOF rewrite terminated with success")
	s.aof.pending, s.aof.err = nil, nil // The new file has it all.
	if s.aof.file != nil {
		s.aof.file.Close()
		if err := s.openAOF(); err != nil {
			return err
		}
	}
	s.aof.size, s.aof.base = size, size
	return nil
}

// writeCommands writes the data as commands, by way of a snapshot.
func (d *data) writeCommands(out func([]byte)) error {
	r, w := io.Pipe()
	now := time.Now()
	go func() { w.CloseWithError(d.writeRDB(w, now)) }()
	last := -1
	_, err := readRDB(r, now, func(db int, args ...string) {
		if db != last {
			out(encode("SELECT", strconv.Itoa(db)))
			last = db
		}
		out(encode(args...))
	})
	r.CloseWithError(io.ErrClosedPipe)
	return err
}

// misconf is why writes are refused, or "".
func (s *instance) misconf() string {
	if s.saveFailed && s.config.bool("stop-writes-on-bgsave-error") && len(s.config.savePoints()) > 0 {
		return "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk. " +
			"Commands that may modify the data set are disabled, because this instance is configured to report " +
			"errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the " +
			"Redis logs for details about the RDB error."
	}
	if err := cmp.Or(s.aof.err, s.aof.syncErr); err != nil {
		return "MISCONF Errors writing to the AOF file: " + errnoText(err)
	}
	return ""
}

// errnoText words an error as the C library does.
func errnoText(err error) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
