// Package wire is MongoDB's protocol: OP_MSG, and the OP_QUERY and OP_REPLY a driver says hello
// with before it knows what the server speaks.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// MaxMessage is how large a message may be, in bytes.
const MaxMessage = 48_000_000

// The operations of a message's header.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

// Flags of OP_MSG.
const (
	flagChecksum            = 1 << 0
	flagMoreToCome          = 1 << 1
	flagExhaustAllowed      = 1 << 16
	requiredFlags           = 0xffff
	headerSize              = 16
	sectionBody        byte = 0
	sectionList        byte = 1
)

// Errors of Read.
var (
	ErrSize        = errors.New("recv(): message msgLen is invalid")
	ErrUnsupported = errors.New("unsupported operation")
	ErrMalformed   = errors.New("malformed message")
)

// Request is a command a client sent.
type Request struct {
	ID int32
	// Body is the command. Document sequences are arrays in it, as if they had been sent that way.
	Body value.Doc
	// Legacy is set for OP_QUERY, which is answered by OP_REPLY.
	Legacy bool
	// NoReply is set if the client does not wait for an answer.
	NoReply bool
	// Exhaust is set if the client takes more than one answer.
	Exhaust bool
}

// Read reads one message.
func Read(r io.Reader) (*Request, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n := int32(binary.LittleEndian.Uint32(header[:]))
	if n < headerSize || n > MaxMessage {
		return nil, fmt.Errorf("%w: %d", ErrSize, n)
	}
	data := make([]byte, n)
	copy(data, header[:])
	if _, err := io.ReadFull(r, data[headerSize:]); err != nil {
		return nil, err
	}
	return Decode(data)
}

// Decode reads a message that is complete.
func Decode(data []byte) (*Request, error) {
	if len(data) < headerSize || int64(binary.LittleEndian.Uint32(data)) != int64(len(data)) {
		return nil, ErrSize
	}
	req := &Request{ID: int32(binary.LittleEndian.Uint32(data[4:]))}
	switch op := binary.LittleEndian.Uint32(data[12:]); op {
	case opMsg:
		return req, req.decodeMsg(data)
	case opQuery:
		return req, req.decodeQuery(data[headerSize:])
	default:
		return nil, fmt.Errorf("%w: %d", ErrUnsupported, op)
	}
}

// decodeMsg reads the sections of OP_MSG: one document, and lists of documents that are fields of
// it.
func (req *Request) decodeMsg(data []byte) error {
	if len(data) < headerSize+4 {
		return ErrMalformed
	}
	flags := binary.LittleEndian.Uint32(data[headerSize:])
	if flags&requiredFlags&^(flagChecksum|flagMoreToCome) != 0 {
		return fmt.Errorf("%w: unknown flags %#x", ErrMalformed, flags)
	}
	req.NoReply, req.Exhaust = flags&flagMoreToCome != 0, flags&flagExhaustAllowed != 0
	rest := data[headerSize+4:]
	if flags&flagChecksum != 0 {
		if len(rest) < 4 {
			return ErrMalformed
		}
		end := len(data) - 4
		if crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(data[end:]) {
			return fmt.Errorf("%w: OP_MSG checksum does not match contents", ErrMalformed)
		}
		rest = rest[:len(rest)-4]
	}
	var lists []list
	for len(rest) > 0 {
		kind := rest[0]
		var err error
		switch kind {
		case sectionBody:
			if req.Body != nil {
				return fmt.Errorf("%w: more than one body", ErrMalformed)
			}
			req.Body, rest, err = readDoc(rest[1:])
		case sectionList:
			var l list
			l, rest, err = readList(rest[1:])
			lists = append(lists, l)
		default:
			err = fmt.Errorf("%w: unknown section %d", ErrMalformed, kind)
		}
		if err != nil {
			return err
		}
	}
	if req.Body == nil {
		return fmt.Errorf("%w: no body", ErrMalformed)
	}
	req.Body = withLists(req.Body, lists)
	return nil
}

// list is a document sequence.
type list struct {
	name string
	docs []value.Doc
}

func readDoc(data []byte) (d value.Doc, rest []byte, err error) {
	raw, rest, ok := bsoncore.ReadDocument(data)
	if !ok {
		return nil, nil, ErrMalformed
	}
	if err := value.Validate(raw); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return raw, rest, nil
}

func readList(data []byte) (l list, rest []byte, err error) {
	n, _, ok := bsoncore.ReadLength(data)
	if !ok || n < 4 || int64(n) > int64(len(data)) {
		return l, nil, ErrMalformed
	}
	rest = data[n:]
	data = data[4:n]
	l.name, data, ok = bsoncore.ReadKey(data)
	if !ok {
		return l, nil, ErrMalformed
	}
	for len(data) > 0 {
		var d value.Doc
		if d, data, err = readDoc(data); err != nil {
			return l, nil, err
		}
		l.docs = append(l.docs, d)
	}
	return l, rest, nil
}

// withLists returns the body with the lists as its fields.
func withLists(body value.Doc, lists []list) value.Doc {
	if len(lists) == 0 {
		return body
	}
	var b value.Builder
	for name, v := range value.Fields(body) {
		b.Add(name, v)
	}
	for _, l := range lists {
		b.Add(l.name, value.Of(l.docs))
	}
	return b.Doc()
}

// decodeQuery reads OP_QUERY on a database's $cmd.
func (req *Request) decodeQuery(data []byte) error {
	if len(data) < 4 {
		return ErrMalformed
	}
	ns, data, ok := bsoncore.ReadKey(data[4:])
	if !ok || len(data) < 8 {
		return ErrMalformed
	}
	db, ok := strings.CutSuffix(ns, ".$cmd")
	if !ok {
		return fmt.Errorf("%w: OP_QUERY on %s", ErrUnsupported, ns)
	}
	d, _, err := readDoc(data[8:])
	if err != nil {
		return err
	}
	if inner := value.Get(d, "$query"); value.IsDoc(inner) {
		d = inner.Data
	}
	req.Legacy = true
	req.Body = withDB(d, db)
	return nil
}

func withDB(d value.Doc, db string) value.Doc {
	var b value.Builder
	for name, v := range value.Fields(d) {
		if name != "$db" {
			b.Add(name, v)
		}
	}
	b.Add("$db", value.String(db))
	return b.Doc()
}

// Reply encodes the answer to a request. If more is set, another answer follows, whose request is this answer.
func Reply(id int32, to *Request, answer value.Doc, more bool) []byte {
	dst := make([]byte, headerSize, headerSize+20+len(answer))
	binary.LittleEndian.PutUint32(dst[4:], uint32(id))
	binary.LittleEndian.PutUint32(dst[8:], uint32(to.ID))
	if to.Legacy {
		binary.LittleEndian.PutUint32(dst[12:], opReply)
		dst = binary.LittleEndian.AppendUint32(dst, 8) // AwaitCapable
		dst = binary.LittleEndian.AppendUint64(dst, 0) // no cursor
		dst = binary.LittleEndian.AppendUint32(dst, 0)
		dst = binary.LittleEndian.AppendUint32(dst, 1)
	} else {
		binary.LittleEndian.PutUint32(dst[12:], opMsg)
		var flags uint32
		if more {
			flags = flagMoreToCome
		}
		dst = binary.LittleEndian.AppendUint32(dst, flags)
		dst = append(dst, sectionBody)
	}
	dst = append(dst, answer...)
	binary.LittleEndian.PutUint32(dst, uint32(len(dst)))
	return dst
}
