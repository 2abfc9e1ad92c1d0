package rabbitmq

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of frames, and what ends each.
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xce
)

// maxFrame is how long a frame may be, and maxDepth how deep a table.
const (
	maxFrame = 128 << 10
	maxDepth = 8
)

// frame is a frame as it came; the next one overwrites its payload.
type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

// readFrame reads a frame into a buffer, which it returns if it had to grow.
func readFrame(r *bufio.Reader, buf []byte) (frame, []byte, error) {
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, buf, err
	}
	n := binary.BigEndian.Uint32(head[3:])
	if n > maxFrame-8 {
		return frame{}, buf, hard(codeFrameError, "frame of %d bytes is larger than %d", n, maxFrame)
	}
	if cap(buf) < int(n)+1 {
		buf = make([]byte, max(int(n)+1, 4<<10))
	}
	body := buf[:n+1]
	if _, err := io.ReadFull(r, body); err != nil {
		return frame{}, buf, err
	}
	if body[n] != frameEnd {
		return frame{}, buf, hard(codeFrameError, "frame does not end with %#x", frameEnd)
	}
	return frame{head[0], binary.BigEndian.Uint16(head[1:]), body[:n]}, buf, nil
}

// errShort is what is wrong with arguments that are not all there.
var errShort = errors.New("the arguments are cut short")

// args reads what a method or a header has, one after the other. After an error all is zero.
type args struct {
	b   []byte
	err error
}

func (a *args) take(n int) []byte {
	if a.err == nil && len(a.b) < n {
		a.err = errShort
	}
	if a.err != nil {
		return nil
	}
	p := a.b[:n]
	a.b = a.b[n:]
	return p
}

func (a *args) octet() byte {
	if p := a.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (a *args) short() uint16 {
	if p := a.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (a *args) long() uint32 {
	if p := a.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (a *args) longlong() uint64 {
	if p := a.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (a *args) shortstr() string { return string(a.take(int(a.octet()))) }

func (a *args) longstr() []byte {
	n := a.long()
	if a.err == nil && uint64(n) > uint64(len(a.b)) {
		a.err = errShort
	}
	return a.take(int(n))
}

// table reads names and values: numbers are int64, texts are strings, and what else there is, is read and nil.
func (a *args) table() map[string]any { return a.tableIn(maxDepth) }

func (a *args) tableIn(depth int) map[string]any {
	in := args{b: a.longstr(), err: a.err}
	list := map[string]any{}
	for len(in.b) > 0 && in.err == nil {
		name := in.shortstr()
		list[name] = in.value(depth - 1)
	}
	a.err = in.err
	return list
}

func (a *args) value(depth int) any {
	if depth == 0 && a.err == nil {
		a.err = fmt.Errorf("a table is nested deeper than %d", maxDepth)
	}
	switch kind := a.octet(); kind {
	case 't':
		return a.octet() != 0
	case 'b':
		return int64(int8(a.octet()))
	case 'B':
		return int64(a.octet())
	case 's', 'U':
		return int64(int16(a.short()))
	case 'u':
		return int64(a.short())
	case 'I':
		return int64(int32(a.long()))
	case 'i':
		return int64(a.long())
	case 'l', 'L':
		return int64(a.longlong())
	case 'S', 'x':
		return string(a.longstr())
	case 'F':
		return a.tableIn(depth)
	case 'A':
		in := args{b: a.longstr(), err: a.err}
		for len(in.b) > 0 && in.err == nil {
			in.value(depth - 1)
		}
		a.err = in.err
	case 'f':
		a.take(4)
	case 'd', 'T':
		a.take(8)
	case 'D':
		a.take(5)
	case 'V':
	default:
		if a.err == nil {
			a.err = fmt.Errorf("a table has a value of unknown type %q", kind)
		}
	}
	return nil
}

// packet makes frames.
type packet []byte

// method begins a frame with a method; end ends it.
func method(channel uint16, m id) packet {
	p := packet{frameMethod, byte(channel >> 8), byte(channel), 0, 0, 0, 0}
	return binary.BigEndian.AppendUint32(p, uint32(m))
}

func (p packet) octet(v byte) packet      { return append(p, v) }
func (p packet) short(v uint16) packet    { return binary.BigEndian.AppendUint16(p, v) }
func (p packet) long(v uint32) packet     { return binary.BigEndian.AppendUint32(p, v) }
func (p packet) longlong(v uint64) packet { return binary.BigEndian.AppendUint64(p, v) }

func (p packet) bit(v bool) packet {
	if v {
		return append(p, 1)
	}
	return append(p, 0)
}

// shortstr writes a text, or as much of it as there is room for.
func (p packet) shortstr(s string) packet {
	s = s[:min(len(s), 255)]
	return append(append(p, byte(len(s))), s...)
}

func (p packet) longstr(s string) packet { return append(p.long(uint32(len(s))), s...) }

// end closes the frame that begins at an offset.
func (p packet) end(at int) packet {
	binary.BigEndian.PutUint32(p[at+3:], uint32(len(p)-at-7))
	return append(p, frameEnd)
}

// content appends the header and the body of a message.
func (p packet) content(channel uint16, m *message, frameMax int) packet {
	at := len(p)
	p = append(p, frameHeader, byte(channel>>8), byte(channel), 0, 0, 0, 0)
	p = p.short(classBasic).short(0).longlong(uint64(len(m.body)))
	p = append(p, m.header...).end(at)
	for body := m.body; len(body) > 0; {
		some := body[:min(len(body), frameMax-8)]
		body = body[len(some):]
		at = len(p)
		p = append(p, frameBody, byte(channel>>8), byte(channel), 0, 0, 0, 0)
		p = append(p, some...).end(at)
	}
	return p
}
