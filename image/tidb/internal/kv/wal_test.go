package kv

import (
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// entries are the first of a log.
func entries(n uint64) (list []*raftpb.Entry) {
	for i := range n {
		list = append(list, &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(i + 1), Data: []byte("x")})
	}
	return list
}

// Of a log that was cut off while it was written, what is whole is read.
func TestReplay(t *testing.T) {
	data, err := records(entries(3), &raftpb.HardState{Term: proto.Uint64(1), Commit: proto.Uint64(2)})
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) + 1 {
		s := raft.NewMemoryStorage()
		good, err := replay(data[:cut], s)
		if err != nil || good > cut {
			t.Fatalf("%d of %d bytes: %d, %v", cut, len(data), good, err)
		}
		if last, _ := s.LastIndex(); cut == len(data) && last != 3 {
			t.Errorf("%d entries", last)
		}
	}
}

// A file that somebody has written into is read as far as it makes sense.
func FuzzReplay(f *testing.F) {
	data, err := records(entries(2), &raftpb.HardState{Term: proto.Uint64(1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = replay(b, raft.NewMemoryStorage()) })
}
