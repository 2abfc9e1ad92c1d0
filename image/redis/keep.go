package redis

import (
	"bytes"
	"context"
	"maps"
	"time"
)

// kept is what a server has in memory: its data, unless that is in the append-only file, and what was set while it ran.
type kept struct {
	values   map[string]string // of the configuration
	scripts  map[string]string
	rdb      []byte // nil if the append-only file has it all
	lastSave time.Time
	dirty    int64
}

// handOver lets the server be put back to how it is at a moment.
func (s *instance) handOver() { s.env.Keep(s.keep) }

func (s *instance) keep(ctx context.Context) (any, int64, error) {
	for _, g := range []gate{s.turn, s.mu} {
		select {
		case g <- struct{}{}:
			defer g.Unlock()
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
	k := &kept{
		values: maps.Clone(s.config.values), scripts: maps.Clone(s.scripts), lastSave: s.lastSave, dirty: s.dirty,
	}
	if s.aof.file != nil {
		return k, s.scriptBytes, nil
	}
	var b bytes.Buffer
	if err := s.data.writeRDB(&b, time.Now()); err != nil {
		return nil, 0, err
	}
	k.rdb = b.Bytes()
	return k, int64(b.Len()) + s.scriptBytes, nil
}

// takeOver is what the server was put back to, or nil.
func (s *instance) takeOver() *kept {
	k, _ := s.env.Kept().(*kept)
	if k != nil {
		maps.Copy(s.config.values, k.values)
		maps.Copy(s.scripts, k.scripts)
		for _, text := range k.scripts {
			s.scriptBytes += int64(len(text))
		}
	}
	return k
}

// loadKept reads the data of a server that was put back.
func (s *instance) loadKept(k *kept) error {
	if _, err := readRDB(bytes.NewReader(k.rdb), time.Now(), s.give); err != nil {
		s.log(warning, "Fatal error loading the DB: %s. Exiting.", err)
		return errFatal
	}
	s.lastSave, s.dirty = k.lastSave, k.dirty
	return nil
}
