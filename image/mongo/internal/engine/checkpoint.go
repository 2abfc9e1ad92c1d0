package engine

import (
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
)

// checkpointFile holds the databases as they were at some time, in the form of a journal. Files of
// the journal that it covers are removed.
const checkpointFile = "WiredTiger.wt"

// JournalSize returns the bytes written since the last checkpoint.
func (e *Engine) JournalSize() int64 {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return e.journal.size
}

// Checkpoint writes all databases to a file and begins a new journal. Others may go on meanwhile.
func (e *Engine) Checkpoint(env *kit.Env, dir string) error {
	dir = env.Path(dir)
	frames, covered, err := e.rotate(env, dir)
	if err != nil || frames == nil {
		return err
	}
	temp := dir + "/" + checkpointFile + ".tmp"
	f, err := env.FS.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &WriteError{err}
	}
	var buf []byte
	for i, d := range frames {
		buf = appendFrame(buf, d())
		if len(buf) < 1<<20 && i < len(frames)-1 {
			continue
		}
		if _, err := f.Write(buf); err != nil {
			f.Close()
			return &WriteError{err}
		}
		buf = buf[:0]
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = env.FS.Rename(temp, dir+"/"+checkpointFile)
	}
	if err != nil {
		return &WriteError{err}
	}
	for n := covered; n > 0 && env.FS.Remove(logName(dir, n)) == nil; n-- {
	}
	return nil
}

// rotate begins a new journal file and returns the operations that give what came before it, which
// are encoded only when they are asked for. It returns none if nothing was written since the last
// time.
func (e *Engine) rotate(env *kit.Env, dir string) (frames []func() value.Doc, covered int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || j.size == 0 {
		return nil, 0, j.err
	}
	f, _, err := openLog(env, dir, j.number+1)
	if err != nil {
		return nil, 0, &WriteError{err}
	}
	err = j.file.Sync()
	if cerr := j.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		f.Close()
		return nil, 0, &WriteError{err}
	}
	covered = j.number
	j.file, j.number, j.size, j.dirty = f, j.number+1, 0, false
	return e.snapshot(covered), covered, nil
}

// snapshot returns the operations that give all databases, and the end of a checkpoint.
func (e *Engine) snapshot(covered int) []func() value.Doc {
	var frames []func() value.Doc
	add := func(op bson.D) { frames = append(frames, func() value.Doc { return value.Make(op) }) }
	tx := &Tx{e}
	for _, db := range tx.Databases() {
		for _, c := range tx.Collections(db) {
			ns := c.Namespace()
			add(bson.D{
				{Key: "op", Value: opCreate},
				{Key: "ns", Value: ns},
				{Key: "uuid", Value: c.UUID},
				{Key: "o", Value: c.Options},
			})
			for _, x := range c.Indexes[1:] {
				add(bson.D{{Key: "op", Value: opIndex}, {Key: "ns", Value: ns}, {Key: "o", Value: x.Spec}})
			}
			c.Docs(func(d value.Doc) bool {
				frames = append(frames, func() value.Doc {
					return value.Make(bson.D{
						{Key: "op", Value: opInsert},
						{Key: "ns", Value: ns},
						{Key: "o", Value: d},
					})
				})
				return true
			})
		}
	}
	add(bson.D{{Key: "op", Value: opEnd}, {Key: "o", Value: covered}})
	return frames
}

// Close makes all durable and closes the files.
func (e *Engine) Close() error {
	err := e.journal.sync()
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	if cerr := e.journal.file.Close(); err == nil && cerr != nil {
		err = &WriteError{cerr}
	}
	return err
}
