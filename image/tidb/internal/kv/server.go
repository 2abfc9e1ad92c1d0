package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// statementCost is the CPU time that a statement is stated to take.
const statementCost = 100 * time.Microsecond

// handler serves a store's port.
func (f *front) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathKV, f.serveKV)
	mux.HandleFunc("POST "+pathRaft, f.store.serveRaft)
	mux.HandleFunc("POST "+pathJoin, f.store.serveJoin)
	return mux
}

func (f *front) serveKV(w http.ResponseWriter, r *http.Request) {
	var q request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.store.env.CPU.Use(r.Context(), statementCost*time.Duration(1+len(q.Statements))) != nil {
		return
	}
	a := &reply{}
	if err := f.do(r.Context(), q, a); err != nil {
		a.fail(err)
		if errors.Is(err, ErrNotLeader) {
			f.store.mu.Lock()
			a.Leader = f.store.peers[f.store.leader]
			f.store.mu.Unlock()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

func (f *front) do(ctx context.Context, q request, a *reply) (err error) {
	one := func() (Statement, error) {
		if len(q.Statements) != 1 {
			return Statement{}, errors.New("want one statement")
		}
		return q.Statements[0], nil
	}
	switch q.Do {
	case "read", "inside":
		s, err := one()
		if err != nil {
			return err
		}
		var r *Result
		if q.Do == "read" {
			r, err = f.read(ctx, s)
		} else {
			r, err = f.inside(ctx, q.Tx, s)
		}
		a.Results = []*Result{r}
		return err
	case "write":
		a.Results, err = f.write(ctx, q.Statements)
	case "begin":
		a.Tx, err = f.begin(ctx)
	case "commit":
		err = f.commit(ctx, q.Tx)
	case "rollback":
		err = f.rollback(q.Tx)
	default:
		err = fmt.Errorf("nothing can be done by %q", q.Do)
	}
	return err
}

// fromHeader is where the answer to a message goes, as long as the one who gets it does not know the members.
const (
	fromHeader = "Raft-From"
	maxCallers = 20
)

// serveRaft takes a message of another member. What comes from anybody else is dropped.
func (s *Store) serveRaft(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSnapshot))
	m := &raftpb.Message{}
	if err == nil {
		err = proto.Unmarshal(b, m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	_, known := s.peers[m.GetFrom()]
	fresh := s.peers[s.ID] == "" // It waits to be told who the members are.
	if from := r.Header.Get(fromHeader); fresh && from != "" && len(s.callers) < maxCallers {
		s.callers[m.GetFrom()] = from
	}
	s.mu.Unlock()
	if m.GetTo() != s.ID || !known && !fresh {
		http.Error(w, "unknown member", http.StatusForbidden)
		return
	}
	select {
	case s.incoming <- m:
	case <-r.Context().Done():
	default: // Raft sends again.
	}
}

// serveJoin takes a new member into the group.
func (s *Store) serveJoin(w http.ResponseWriter, r *http.Request) {
	var j joining
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&j)
	if err != nil || j.ID == 0 || j.Address == "" {
		http.Error(w, "want the id and the address of a store", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	leads, address, known := s.leader == s.ID && s.current, s.peers[j.ID], s.peers[j.ID] != ""
	s.mu.Unlock()
	if !leads {
		http.Error(w, ErrNotLeader.Error(), http.StatusMisdirectedRequest)
		return
	}
	if known && address == j.Address {
		return
	}
	c := &raftpb.ConfChange{
		Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &j.ID, Context: []byte(j.Address),
	}
	if err := s.change(r.Context(), func() error { return s.node.ProposeConfChange(c) }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// handOver has another member lead the group, if this store leads it.
func (s *Store) handOver(ctx context.Context, to uint64) {
	s.mu.Lock()
	leads := s.leader == s.ID && s.peers[to] != ""
	s.mu.Unlock()
	if leads && to != s.ID {
		_ = s.change(ctx, func() error {
			s.node.TransferLeader(to)
			return nil
		})
	}
}

// remove takes members out of the group, if this store leads it.
func (s *Store) remove(ctx context.Context, ids []uint64) {
	for _, id := range ids {
		s.mu.Lock()
		known := s.peers[id] != "" && s.leader == s.ID && len(s.peers) > 1
		next := uint64(0)
		if known && id == s.ID { // Somebody else must lead it to do that.
			for peer := range s.peers {
				if peer != id {
					next = peer
				}
			}
		}
		s.mu.Unlock()
		if !known {
			continue
		}
		c := &raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: &id}
		_ = s.change(ctx, func() error {
			if next != 0 {
				s.node.TransferLeader(next)
				return nil
			}
			return s.node.ProposeConfChange(c)
		})
	}
}

// post sends something to a store and reads the answer into another thing, if that is not nil.
func post(ctx context.Context, c *http.Client, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxSnapshot))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(b[:min(len(b), 200)]))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}
