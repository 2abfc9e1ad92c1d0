package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	tick           = 100 * time.Millisecond
	electionTicks  = 10
	heartbeatTicks = 3
	// A snapshot is kept when the log has this many bytes or entries.
	maxLogSize    = 2 << 20
	maxLogEntries = 2000
	// proposeTime is how long a command may take to be replicated.
	proposeTime = 5 * time.Second
)

// command is a transaction as it is replicated.
type command struct {
	ID         uint64      `json:"id"`   // drawn by who proposes it
	After      uint64      `json:"base"` // the index of the command that it was run after
	Statements []Statement `json:"statements"`
}

// Store is one TiKV: a member of the Raft group with a copy of the data.
type Store struct {
	ID      uint64
	Address string // where other stores and TiDB reach it

	env     *kit.Env
	engine  *engine
	journal *journal
	storage *raft.MemoryStorage
	node    *raft.RawNode
	send    func(to string, m *raftpb.Message)
	log     func(level, text string, fields ...any)

	members *raftpb.ConfState // of the group, as of the last entry that was applied

	incoming chan *raftpb.Message
	changes  chan func() // run by the loop, which alone touches the node

	mu      sync.Mutex
	peers   map[uint64]string // addresses
	callers map[uint64]string // who has sent messages before the members were known
	leader  uint64
	term    uint64
	applied uint64 // index of the last entry
	last    uint64 // index of the last command that was applied
	current bool   // it leads, and has applied all that was committed before
	waiting map[uint64]chan error
	gone    bool // it was removed from the group
}

// openStore reads what a store has kept. found is false for a new one, whose group is yet to be joined or founded.
func openStore(ctx context.Context, env *kit.Env, dir string) (s *Store, found bool, err error) {
	s = &Store{
		env: env, storage: raft.NewMemoryStorage(), incoming: make(chan *raftpb.Message, 256),
		changes: make(chan func(), 16), peers: map[uint64]string{}, callers: map[uint64]string{},
		waiting: map[uint64]chan error{}, log: func(string, string, ...any) {},
	}
	if s.engine, err = newEngine(ctx); err != nil {
		return nil, false, err
	}
	s.journal, found, err = openJournal(env, dir, s.storage)
	if err == nil {
		var snap *raftpb.Snapshot
		if snap, err = s.storage.Snapshot(); err == nil && !raft.IsEmptySnap(snap) {
			err = s.install(ctx, snap)
		}
	}
	if err != nil {
		s.close()
		return nil, false, err
	}
	return s, found, nil
}

func (s *Store) close() {
	s.engine.close()
	if s.journal != nil {
		s.journal.close()
	}
}

// start makes it a member. The founder of a group is its only member at first.
func (s *Store) start(founder bool) (err error) {
	s.node, err = raft.NewRawNode(&raft.Config{
		ID: s.ID, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, Storage: s.storage,
		Applied: s.applied, MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true,
		DisableProposalForwarding: true, Logger: quiet{s},
	})
	if err != nil || !founder {
		return err
	}
	return s.node.Bootstrap([]raft.Peer{{ID: s.ID, Context: []byte(s.Address)}})
}

// run is the store's life. It ends with ctx, or when the store was removed from its group.
func (s *Store) run(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			s.node.Tick()
		case m := <-s.incoming:
			if err := s.node.Step(m); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
				s.log("WARN", "raft step failed", "error", err)
			}
		case f := <-s.changes:
			f()
		}
		for s.node.HasReady() {
			if err := s.advance(ctx); err != nil {
				return err
			}
		}
		s.observe()
		if s.removed() {
			return nil
		}
	}
}

// advance does what Raft wants done: keep, send, apply.
func (s *Store) advance(ctx context.Context) error {
	ready := s.node.Ready()
	if !raft.IsEmptySnap(ready.Snapshot) {
		if err := s.storage.ApplySnapshot(ready.Snapshot); err != nil {
			return err
		}
		if err := s.journal.keep(ready.Snapshot, nil, ready.HardState); err != nil {
			return err
		}
		if err := s.install(ctx, ready.Snapshot); err != nil {
			return err
		}
	}
	if err := s.journal.append(ready.Entries, ready.HardState); err != nil {
		return fmt.Errorf("write the raft log: %w", err)
	}
	if !raft.IsEmptyHardState(ready.HardState) {
		if err := s.storage.SetHardState(ready.HardState); err != nil {
			return err
		}
	}
	if err := s.storage.Append(ready.Entries); err != nil {
		return err
	}
	s.mu.Lock()
	peers := maps.Clone(s.callers)
	maps.Copy(peers, s.peers)
	s.mu.Unlock()
	for _, m := range ready.Messages {
		if address := peers[m.GetTo()]; address != "" {
			s.send(address, m)
		}
		if m.GetType() == raftpb.MsgSnap { // It is sent again if it does not arrive.
			s.node.ReportSnapshot(m.GetTo(), raft.SnapshotFinish)
		}
	}
	for _, e := range ready.CommittedEntries {
		if err := s.apply(e); err != nil {
			return err
		}
	}
	s.node.Advance(ready)
	return s.compact()
}

// apply does what an entry of the log says.
func (s *Store) apply(e *raftpb.Entry) error {
	switch e.GetType() {
	case raftpb.EntryConfChange:
		var c raftpb.ConfChange
		if err := proto.Unmarshal(e.GetData(), &c); err != nil {
			return err
		}
		s.members = s.node.ApplyConfChange(&c)
		s.mu.Lock()
		switch c.GetType() {
		case raftpb.ConfChangeRemoveNode:
			delete(s.peers, c.GetNodeId())
			s.gone = s.gone || c.GetNodeId() == s.ID
		default:
			s.peers[c.GetNodeId()] = string(c.GetContext())
		}
		s.mu.Unlock()
	case raftpb.EntryNormal:
		if len(e.GetData()) > 0 {
			if err := s.applyCommand(e); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	s.applied = e.GetIndex()
	s.current = s.leader == s.ID && e.GetTerm() == s.term
	s.mu.Unlock()
	return nil
}

// ErrConflict says that another transaction was committed meanwhile.
var ErrConflict = errors.New("write conflict: the leader of the region has changed, try again later")

func (s *Store) applyCommand(e *raftpb.Entry) error {
	var c command
	if err := json.Unmarshal(e.GetData(), &c); err != nil {
		return fmt.Errorf("entry %d of the raft log: %w", e.GetIndex(), err)
	}
	s.mu.Lock()
	stale := c.After != s.last
	s.mu.Unlock()
	var failed error = ErrConflict
	if !stale {
		if _, failed = s.engine.apply(c.Statements); failed == nil {
			s.mu.Lock()
			s.last = e.GetIndex()
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiting[c.ID]; w != nil {
		delete(s.waiting, c.ID)
		w <- failed
	}
	return nil
}

// observe notes who leads.
func (s *Store) observe() {
	status := s.node.BasicStatus()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader != status.Lead || s.term != status.GetTerm() {
		s.leader, s.term = status.Lead, status.GetTerm()
		s.current = false
		if s.leader == s.ID {
			last, _ := s.storage.Term(s.applied)
			s.current = last == s.term
			s.log("INFO", "became leader of region 2", "term", s.term)
		}
	}
	if s.leader != s.ID {
		for id, w := range s.waiting {
			delete(s.waiting, id)
			w <- ErrConflict
		}
	}
}

func (s *Store) removed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// state is what a snapshot has beside the database.
type state struct {
	Peers map[uint64]string `json:"peers"`
	Last  uint64            `json:"last"`
}

// compact keeps a snapshot when the log has become long.
func (s *Store) compact() error {
	firstIndex, _ := s.storage.FirstIndex()
	if s.journal.size < maxLogSize && s.applied-firstIndex < maxLogEntries || s.applied < firstIndex {
		return nil
	}
	data, err := s.dump()
	if err != nil {
		return err
	}
	snap, err := s.storage.CreateSnapshot(s.applied, s.members, data)
	if err != nil {
		return err
	}
	if err := s.storage.Compact(s.applied); err != nil {
		return err
	}
	var left []*raftpb.Entry
	from, _ := s.storage.FirstIndex()
	if to, _ := s.storage.LastIndex(); to >= from {
		if left, err = s.storage.Entries(from, to+1, 1<<62); err != nil {
			return err
		}
	}
	hard, _, _ := s.storage.InitialState()
	return s.journal.keep(snap, left, hard)
}

// dump is the content of a snapshot: the state, with its length before it, and the database.
func (s *Store) dump() ([]byte, error) {
	s.mu.Lock()
	head, err := json.Marshal(state{s.peers, s.last})
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	db, err := s.engine.dump()
	if err != nil {
		return nil, err
	}
	data := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	return append(append(data, head...), db...), nil
}

// install puts a snapshot in the place of what there is.
func (s *Store) install(ctx context.Context, snap *raftpb.Snapshot) error {
	data := snap.GetData()
	if len(data) < 4 || int(binary.BigEndian.Uint32(data)) > len(data)-4 {
		return errors.New("the snapshot is damaged")
	}
	n := int(binary.BigEndian.Uint32(data))
	var head state
	if err := json.NewDecoder(bytes.NewReader(data[4 : 4+n])).Decode(&head); err != nil {
		return fmt.Errorf("the snapshot is damaged: %w", err)
	}
	if db := data[4+n:]; len(db) > 0 {
		if err := s.engine.load(ctx, db); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers, s.last, s.applied = head.Peers, head.Last, snap.GetMetadata().GetIndex()
	s.members = snap.GetMetadata().GetConfState()
	return nil
}

// quiet is Raft's log: only what is serious. What Raft cannot go on after is a panic.
type quiet struct{ s *Store }

func (quiet) Debug(...any)          {}
func (quiet) Debugf(string, ...any) {}
func (quiet) Info(...any)           {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warning(...any)        {}

func (quiet) Warningf(string, ...any) {}

func (q quiet) Error(v ...any)            { q.s.log("ERROR", fmt.Sprint(v...)) }
func (q quiet) Errorf(f string, v ...any) { q.s.log("ERROR", fmt.Sprintf(f, v...)) }
func (quiet) Fatal(v ...any)              { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
func (quiet) Panic(v ...any)              { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
