package engine

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
)

// CommitInterval is how long what was written may stay in the kernel's memory before it is on disk.
const CommitInterval = 100 * time.Millisecond

// The operations of a journal. Replaying them in their order gives the databases.
const (
	opCreate    = "create"
	opDrop      = "drop"
	opRename    = "rename"
	opInsert    = "i"
	opUpdate    = "u"
	opDelete    = "d"
	opIndex     = "index"
	opDropIndex = "dropIndex"
	opOptions   = "options"
	opEnd       = "end" // of a checkpoint
)

// WriteError is a failure to write the journal.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return fmt.Sprintf("write journal: %v", e.Err) }
func (e *WriteError) Unwrap() error { return e.Err }

// journal is a file that operations are appended to. Each is a frame: the length and the checksum
// of a document, and the document.
type journal struct {
	buf []byte // not yet written; protected by the engine's lock

	mu     sync.Mutex // protects what follows
	file   kit.File
	number int // of the file
	size   int64
	dirty  bool  // not synced
	err    error // the first failure, which stays
}

const frameHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendFrame(dst []byte, d value.Doc) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(d, castagnoli))
	return append(dst, d...)
}

// maxFrame is more than any operation needs: a document and its name.
const maxFrame = value.MaxSize + 1<<16

// readFrame returns the first document of a file's content and the rest. It reports false if the
// frame is torn or damaged.
func readFrame(data []byte) (d value.Doc, rest []byte, ok bool) {
	if len(data) < frameHeader {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(data)
	sum := binary.LittleEndian.Uint32(data[4:])
	data = data[frameHeader:]
	if n > maxFrame || int64(n) > int64(len(data)) {
		return nil, nil, false
	}
	d = value.Doc(data[:n:n])
	if crc32.Checksum(d, castagnoli) != sum || value.Validate(d) != nil {
		return nil, nil, false
	}
	return d, data[n:], true
}

// add notes an operation for the next flush.
func (j *journal) add(op bson.D) { j.buf = appendFrame(j.buf, value.Make(op)) }

// flush writes what was added to the file.
func (j *journal) flush() error {
	if len(j.buf) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		if _, err := j.file.Write(j.buf); err != nil {
			j.err = &WriteError{err}
		}
	}
	j.size += int64(len(j.buf))
	j.dirty = true
	if cap(j.buf) > 1<<20 {
		j.buf = nil
	}
	j.buf = j.buf[:0]
	return j.err
}

// sync makes what was written durable.
func (j *journal) sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && j.dirty {
		if err := j.file.Sync(); err != nil {
			j.err = &WriteError{err}
		}
		j.dirty = false
	}
	return j.err
}

// Sync makes all that was written durable.
func (e *Engine) Sync() error { return e.journal.sync() }

// logName is the name of a journal file.
func logName(dir string, number int) string {
	return fmt.Sprintf("%s/journal/WiredTigerLog.%010d", dir, number)
}

// logNumber reads it back.
func logNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "WiredTigerLog.")
	if !ok || len(digits) != 10 {
		return 0, false
	}
	_, err := fmt.Sscanf(digits, "%010d", &n)
	return n, err == nil
}

func openLog(env *kit.Env, dir string, number int) (kit.File, int64, error) {
	f, err := env.FS.OpenFile(logName(dir, number), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}
