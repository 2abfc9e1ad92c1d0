package kv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/kit"
)

// The files of a store, in its data directory.
const (
	logFile      = "raft.log"
	snapshotFile = "raft.snapshot"
)

// The kinds of records of the log.
const (
	recordEntry byte = iota + 1
	recordState
)

// header is the length, the checksum and the kind of a record.
const header = 4 + 4 + 1

// journal keeps the Raft log of a store in a file.
type journal struct {
	env  *kit.Env
	dir  string
	file kit.File
	size int // of the file
}

// openJournal reads what a store has kept, and goes on with it. found is false for a new store.
func openJournal(env *kit.Env, dir string, into *raft.MemoryStorage) (j *journal, found bool, err error) {
	j = &journal{env: env, dir: dir}
	if err := env.MkdirAll(dir, 0o755); err != nil {
		return nil, false, err
	}
	data, err := env.ReadFile(dir + "/" + snapshotFile)
	switch {
	case err == nil:
		found = true
		var snap raftpb.Snapshot
		if err := proto.Unmarshal(data, &snap); err != nil {
			return nil, false, err
		}
		if err := into.ApplySnapshot(&snap); err != nil {
			return nil, false, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	data, err = env.ReadFile(dir + "/" + logFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	found = found || len(data) > 0
	good, err := replay(data, into)
	if err != nil {
		return nil, false, err
	}
	// What was cut off while it was written is written again, or was never promised.
	if err := env.WriteFile(dir+"/"+logFile, data[:good], 0o644); err != nil {
		return nil, false, err
	}
	return j, found, j.reopen()
}

func (j *journal) reopen() (err error) {
	name := j.dir + "/" + logFile
	if j.file != nil {
		_ = j.file.Close()
	}
	if j.file, err = j.env.FS.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return err
	}
	info, err := j.file.Stat()
	if err == nil {
		j.size = int(info.Size())
	}
	return err
}

// used is how much a store takes of its disk.
func (j *journal) used() (n int64) {
	for _, name := range []string{logFile, snapshotFile} {
		if info, err := j.env.FS.Stat(j.dir + "/" + name); err == nil {
			n += info.Size()
		}
	}
	return n
}

func (j *journal) close() {
	if j.file != nil {
		_ = j.file.Close()
	}
}

// replay reads records until the end or the first that is broken, and returns how many bytes were good.
func replay(data []byte, into *raft.MemoryStorage) (good int, err error) {
	for len(data)-good >= header {
		r := data[good:]
		n := int(binary.BigEndian.Uint32(r))
		if n < 0 || n > len(r)-header || crc32.ChecksumIEEE(r[8:header+n]) != binary.BigEndian.Uint32(r[4:]) {
			break
		}
		body := r[header : header+n]
		switch r[8] {
		case recordEntry:
			e := &raftpb.Entry{}
			if err := proto.Unmarshal(body, e); err != nil {
				return good, err
			}
			last, _ := into.LastIndex()
			if e.GetIndex() > last+1 {
				return good, nil // Nothing before it is there, so it cannot be used.
			}
			if err := into.Append([]*raftpb.Entry{e}); err != nil {
				return good, err
			}
		case recordState:
			s := &raftpb.HardState{}
			if err := proto.Unmarshal(body, s); err != nil {
				return good, err
			}
			if err := into.SetHardState(s); err != nil {
				return good, err
			}
		}
		good += header + n
	}
	return good, nil
}

// record is a message as the log has it.
func record(kind byte, m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	r := make([]byte, header, header+len(body))
	binary.BigEndian.PutUint32(r, uint32(len(body)))
	r[8] = kind
	r = append(r, body...)
	binary.BigEndian.PutUint32(r[4:], crc32.ChecksumIEEE(r[8:]))
	return r, nil
}

// append writes entries and the state, in one write.
func (j *journal) append(entries []*raftpb.Entry, state *raftpb.HardState) error {
	data, err := records(entries, state)
	if err != nil || len(data) == 0 {
		return err
	}
	j.size += len(data)
	if _, err = j.file.Write(data); err != nil {
		return err
	}
	return j.file.Sync()
}

func records(entries []*raftpb.Entry, state *raftpb.HardState) (data []byte, err error) {
	for _, e := range entries {
		r, err := record(recordEntry, e)
		if err != nil {
			return nil, err
		}
		data = append(data, r...)
	}
	if !raft.IsEmptyHardState(state) {
		r, err := record(recordState, state)
		if err != nil {
			return nil, err
		}
		data = append(data, r...)
	}
	return data, nil
}

// keep writes a snapshot, and the log anew with what comes after it.
func (j *journal) keep(snap *raftpb.Snapshot, entries []*raftpb.Entry, state *raftpb.HardState) error {
	data, err := proto.Marshal(snap)
	if err == nil {
		err = j.replace(snapshotFile, data)
	}
	if err != nil {
		return err
	}
	if data, err = records(entries, state); err == nil {
		err = j.replace(logFile, data)
	}
	if err != nil {
		return err
	}
	return j.reopen()
}

// replace puts a file in the place of another at once.
func (j *journal) replace(name string, data []byte) error {
	if err := j.env.WriteFile(j.dir+"/"+name+".tmp", data, 0o644); err != nil {
		return err
	}
	return j.env.FS.Rename(j.dir+"/"+name+".tmp", j.dir+"/"+name)
}
