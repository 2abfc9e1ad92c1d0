package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
)

// ErrCorrupt is the error for data files that cannot be read.
var ErrCorrupt = errors.New("data files are corrupt")

// Options are how an engine is opened.
type Options struct {
	Dir string // exists
	// OnSize is told the bytes of all documents whenever they change. It must not block.
	OnSize func(bytes int64)
}

// Open reads the databases from their files.
func Open(env *kit.Env, o Options) (*Engine, error) {
	e := &Engine{dbs: map[string]map[string]*Collection{}, journal: &journal{}}
	dir := env.Path(o.Dir)
	if err := env.MkdirAll(dir+"/journal", 0o700); err != nil {
		return nil, err
	}
	base, err := e.loadCheckpoint(env, dir)
	if err != nil {
		return nil, err
	}
	number, err := e.loadLogs(env, dir, base)
	if err != nil {
		return nil, err
	}
	j := e.journal
	j.buf = nil
	j.number = number
	if j.file, j.size, err = openLog(env, dir, number); err != nil {
		return nil, err
	}
	e.onSize = o.OnSize
	if e.onSize != nil && e.bytes > 0 {
		e.onSize(e.bytes)
	}
	return e, nil
}

// loadCheckpoint returns the number of the last journal file that the checkpoint covers.
func (e *Engine) loadCheckpoint(env *kit.Env, dir string) (int, error) {
	data, err := env.ReadFile(dir + "/" + checkpointFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for len(data) > 0 {
		op, rest, ok := readFrame(data)
		if !ok {
			break
		}
		if kind, _ := value.Str(value.Get(op, "op")); kind == opEnd {
			n, _ := value.Int(value.Get(op, "o"))
			return int(n), nil
		}
		if err := e.replay(op); err != nil {
			return 0, err
		}
		data = rest
	}
	return 0, fmt.Errorf("%w: %s is incomplete", ErrCorrupt, checkpointFile)
}

// loadLogs replays the journal files after base and returns the number of the one to go on with.
func (e *Engine) loadLogs(env *kit.Env, dir string, base int) (int, error) {
	entries, err := env.FS.ReadDir(dir + "/journal")
	if err != nil {
		return 0, err
	}
	var numbers []int
	for _, entry := range entries {
		if n, ok := logNumber(entry.Name()); ok && n > base {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		name := logName(dir, n)
		data, err := env.ReadFile(name)
		if err != nil {
			return 0, err
		}
		good, err := e.replayAll(data)
		if err != nil {
			return 0, err
		}
		if good == len(data) {
			continue
		}
		if i < len(numbers)-1 {
			return 0, fmt.Errorf("%w: %s is damaged at byte %d", ErrCorrupt, name, good)
		}
		if err := truncate(env, name, int64(good)); err != nil { // The last write was cut short.
			return 0, err
		}
	}
	if len(numbers) == 0 {
		return base + 1, nil
	}
	return numbers[len(numbers)-1], nil
}

func truncate(env *kit.Env, name string, size int64) error {
	f, err := env.FS.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

// replayAll replays the operations of a journal file up to the first damaged one and returns its
// offset.
func (e *Engine) replayAll(data []byte) (int, error) {
	rest := data
	for len(rest) > 0 {
		op, tail, ok := readFrame(rest)
		if !ok {
			break
		}
		if err := e.replay(op); err != nil {
			return 0, err
		}
		rest = tail
	}
	return len(data) - len(rest), nil
}

// replay does an operation of a journal again.
func (e *Engine) replay(op value.Doc) error {
	tx := &Tx{e}
	defer func() { e.journal.buf = e.journal.buf[:0] }() // It is in a file already.
	kind, _ := value.Str(value.Get(op, "op"))
	ns, _ := value.Str(value.Get(op, "ns"))
	o := value.Get(op, "o")
	db, name, _ := strings.Cut(ns, ".")
	c := tx.Collection(db, name)
	if kind == opCreate {
		if c != nil {
			return fmt.Errorf("%w: %s is created twice", ErrCorrupt, ns)
		}
		subtype, id, _ := value.Get(op, "uuid").BinaryOK()
		_, err := e.create(db, name, bson.Binary{Subtype: subtype, Data: slices.Clone(id)},
			slices.Clone(value.Inner(o)))
		return err
	}
	if c == nil {
		return fmt.Errorf("%w: %s of %s, which does not exist", ErrCorrupt, kind, ns)
	}
	switch kind {
	case opDrop:
		tx.Drop(c)
	case opRename:
		db, _ := value.Str(value.Get(op, "db"))
		to, _ := value.Str(value.Get(op, "to"))
		return tx.Rename(c, db, to)
	case opInsert:
		return tx.Insert(c, slices.Clone(value.Inner(o)))
	case opUpdate, opDelete:
		return tx.change(c, kind, o)
	case opIndex:
		return tx.CreateIndex(c, slices.Clone(value.Inner(o)))
	case opDropIndex:
		index, _ := value.Str(o)
		tx.DropIndex(c, index)
	case opOptions:
		tx.SetOptions(c, slices.Clone(value.Inner(o)))
	default:
		return fmt.Errorf("%w: unknown operation %q", ErrCorrupt, kind)
	}
	return nil
}

// change replays an update, whose argument is the new document, or a deletion, whose argument is
// the _id.
func (tx *Tx) change(c *Collection, kind string, o value.Value) error {
	key := o
	if kind == opUpdate {
		key = value.Get(value.Inner(o), "_id")
	}
	id, ok := c.Indexes[0].holder([]value.Value{key}, -1)
	if !ok {
		return fmt.Errorf("%w: no document of %s has the _id %s", ErrCorrupt, c.Namespace(), value.ValueText(key))
	}
	if kind == opDelete {
		tx.Delete(c, id)
		return nil
	}
	return tx.Replace(c, id, slices.Clone(value.Inner(o)))
}
