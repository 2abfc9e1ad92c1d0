package kv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The ports of a store, as TiKV has them.
const (
	Port       = 20160
	StatusPort = 20180
)

// Paths of a store's port.
const (
	pathKV   = "/kv"
	pathRaft = "/raft"
	pathJoin = "/join"
)

// maxBody bounds a request.
const (
	maxBody     = 6 << 20
	maxSnapshot = 48 << 20
)

// request is what TiDB asks of a store.
type request struct {
	Do         string      `json:"do"` // "read", "write", "begin", "inside", "commit" or "rollback"
	Tx         uint64      `json:"tx,omitempty"`
	Statements []Statement `json:"statements,omitempty"`
}

// reply is what a store answers.
type reply struct {
	Tx      uint64    `json:"tx,omitempty"`
	Results []*Result `json:"results,omitempty"`
	Error   string    `json:"error,omitempty"`
	SQL     bool      `json:"sql,omitempty"`    // the error is the database's
	Leader  string    `json:"leader,omitempty"` // its address, if this store does not lead
}

// failures are the errors that keep their identity over the wire.
var failures = []error{ErrNotLeader, ErrLockWait, ErrNoSuchTx, ErrUnavailable, ErrTooLarge, ErrConflict, errBrokenOff}

// fail writes an error into a reply.
func (r *reply) fail(err error) {
	var sql *SQLError
	if errors.As(err, &sql) {
		r.Error, r.SQL = sql.Text, true
		return
	}
	r.Error = err.Error()
}

// failure reads the error of a reply.
func (r *reply) failure() error {
	switch {
	case r.Error == "":
		return nil
	case r.SQL:
		return &SQLError{r.Error}
	}
	for _, err := range failures {
		if r.Error == err.Error() {
			return err
		}
	}
	return fmt.Errorf("store: %s", r.Error)
}

// joining is who wants to be a member of the group.
type joining struct {
	ID      uint64 `json:"id"`
	Address string `json:"address"`
}

// StoreReport is what a store tells PD of itself.
type StoreReport struct {
	ID            uint64 `json:"id"`
	Address       string `json:"address"`
	StatusAddress string `json:"status_address"`
	Version       string `json:"version"`
	Started       int64  `json:"started"`
	Capacity      int64  `json:"capacity"`
	Available     int64  `json:"available"`
	Used          int64  `json:"used"`
	Member        bool   `json:"member"`          // it has joined the group
	Leader        bool   `json:"leader"`          // it leads the group
	Peers         []Peer `json:"peers,omitempty"` // of the group, if it leads
	Term          uint64 `json:"term"`
	Applied       uint64 `json:"applied"`
}

// Peer is a member of the group.
type Peer struct {
	ID      uint64 `json:"id"`
	Address string `json:"address"`
}

// Orders is what PD answers a store.
type Orders struct {
	Bootstrapped bool     `json:"bootstrapped"`
	Stores       []Peer   `json:"stores"`
	Remove       []uint64 `json:"remove,omitempty"` // members that are to leave the group
	Lead         uint64   `json:"lead,omitempty"`   // the store that is to lead instead of this one
}

// ordinal is the number at the end of a pod's name, or -1.
func ordinal(name string) int {
	name, _, _ = strings.Cut(name, ".")
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[i+1:])
	if i < 0 || err != nil {
		return -1
	}
	return n
}
