package rabbitmq

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/aiopslab/aiopslab/kit"
)

// definitions are what of a node is durable, but for messages.
type definitions struct {
	Users     []userDefinition     `json:"users"`
	Exchanges []exchangeDefinition `json:"exchanges"`
	Queues    []queueDefinition    `json:"queues"`
	Bindings  []bindingDefinition  `json:"bindings"`
}

type userDefinition struct {
	Name        string     `json:"name"`
	Salt        []byte     `json:"salt"`
	Hash        []byte     `json:"hash"`
	Tags        []string   `json:"tags"`
	Permissions *[3]string `json:"permissions,omitempty"`
}

type exchangeDefinition struct {
	Name       string `json:"name"`
	Kind       string `json:"type"`
	AutoDelete bool   `json:"auto_delete"`
	Internal   bool   `json:"internal"`
}

type queueDefinition struct {
	Name       string `json:"name"`
	AutoDelete bool   `json:"auto_delete"`
	TTL        int64  `json:"ttl_ns"`
	MaxLength  int    `json:"max_length"`
}

type bindingDefinition struct {
	Source, Queue, Key string
}

// store is the disk of a node. A log has the messages: each that was published, and each that is no longer needed. It
// is written anew without these when they are the larger part. The broker's lock guards it.
type store struct {
	env  *kit.Env
	dir  string
	log  kit.File
	live map[uint64][]byte // records by number
	next uint64
	size int // of the log
	used int // by what is needed
}

const (
	recordKeep   = 'k'
	recordForget = 'f'
	// rewriteFrom is how large the log is at least when it is written anew.
	rewriteFrom = 1 << 20
	// maxLog is how much is read of a log.
	maxLog = 4 * watermark
)

func (s *store) path(name string) string { return path.Join(s.dir, name) }

// save writes definitions, all or nothing.
func (s *store) save(d *definitions) error {
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	fresh := s.path("definitions.new")
	if err := s.env.WriteFile(fresh, data, 0o640); err != nil {
		return err
	}
	return s.env.FS.Rename(fresh, s.path("definitions.json"))
}

// keep writes a message of a queue to the log.
func (s *store) keep(queue string, i *item) error {
	s.next++
	var flags byte
	if i.redelivered {
		flags = 1
	}
	body := packet{}.octet(flags).shortstr(queue).shortstr(i.message.exchange).shortstr(i.message.key).
		longstr(string(i.message.header)).longstr(string(i.message.body))
	rec := record(recordKeep, s.next, body)
	if err := s.append(rec); err != nil {
		return err
	}
	i.kept, i.number = true, s.next
	s.live[s.next] = rec
	s.used += len(rec)
	return nil
}

// forget notes that a message is no longer needed.
func (s *store) forget(i *item) {
	rec := s.live[i.number]
	delete(s.live, i.number)
	s.used -= len(rec)
	i.kept = false
	_ = s.append(record(recordForget, i.number, nil)) // At worst it is delivered once more after a restart.
	if s.size > rewriteFrom && s.size > 3*s.used {
		_ = s.rewrite()
	}
}

// record is a kind, a number, and a content with its length.
func record(kind byte, number uint64, body []byte) []byte {
	return append(packet{kind}.longlong(number).long(uint32(len(body))), body...)
}

func (s *store) append(rec []byte) error {
	n, err := s.log.Write(rec)
	s.size += n
	if err != nil && n > 0 { // Half a record would spoil what follows.
		err = errors.Join(err, s.rewrite())
	}
	return err
}

// rewrite writes a log of what is needed.
func (s *store) rewrite() error {
	fresh, size := s.path("messages.new"), 0
	f, err := s.env.FS.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := range s.ordered {
		size += len(s.live[n])
		if _, err = w.Write(s.live[n]); err != nil {
			break
		}
	}
	if err = errors.Join(err, w.Flush()); err == nil {
		err = s.env.FS.Rename(fresh, s.path("messages.log"))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := s.log
	s.log, s.size = f, size
	if old != nil {
		_ = old.Close()
	}
	return nil
}

// ordered are the numbers of what is needed, the oldest first.
func (s *store) ordered(yield func(uint64) bool) {
	for _, n := range sortedKeys(s.live) {
		if !yield(n) {
			return
		}
	}
}

// openStore reads what a node has on its disk. None is no error, and gives no definitions.
func openStore(env *kit.Env, dir string) (*store, *definitions, error) {
	s := &store{env: env, dir: dir, live: map[uint64][]byte{}}
	if err := env.MkdirAll(dir, 0o750); err != nil {
		return nil, nil, err
	}
	var defs *definitions
	data, err := env.ReadFile(s.path("definitions.json"))
	switch {
	case err == nil:
		defs = &definitions{}
		if err := json.Unmarshal(data, defs); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.path("definitions.json"), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	if err := s.read(); err != nil {
		return nil, nil, err
	}
	return s, defs, s.rewrite()
}

// read reads the log, as far as it is whole.
func (s *store) read() error {
	f, err := s.env.FS.OpenFile(s.path("messages.log"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(io.LimitReader(f, maxLog))
	var head [13]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil
		}
		number, n := binary.BigEndian.Uint64(head[1:]), binary.BigEndian.Uint32(head[9:])
		if n > 2*maxBody || head[0] != recordKeep && head[0] != recordForget {
			return nil // What was torn by a crash.
		}
		rec := append(head[:len(head):len(head)], make([]byte, n)...)
		if _, err := io.ReadFull(r, rec[len(head):]); err != nil {
			return nil
		}
		s.next = max(s.next, number)
		if head[0] == recordForget {
			s.used -= len(s.live[number])
			delete(s.live, number)
			continue
		}
		s.live[number] = rec
		s.used += len(rec)
	}
}
