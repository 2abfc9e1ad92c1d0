package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxProduce is the size of a request with messages, maxRequest that of any other.
	maxProduce = 16 << 20
	maxRequest = 256 << 10
	// maxIdle is how long a client may say nothing, as connections.max.idle.ms has it; maxSlow how long a request may
	// take to arrive, and a response to be taken.
	maxIdle = 10 * time.Minute
	maxSlow = 30 * time.Second
	// readStep is how much room a request gets before more of it has arrived.
	readStep = 64 << 10

	requestCost = 40 * time.Microsecond
	byteCost    = 4 * time.Nanosecond
)

// served are the requests that the broker answers; servedByController those that it answers as the controller.
var (
	served = keys(
		kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetCommit, kmsg.OffsetFetch,
		kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.SyncGroup, kmsg.DescribeGroups,
		kmsg.ListGroups, kmsg.ApiVersions, kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.DeleteRecords,
		kmsg.InitProducerID, kmsg.OffsetForLeaderEpoch, kmsg.DescribeConfigs, kmsg.AlterConfigs, kmsg.CreatePartitions,
		kmsg.DeleteGroups, kmsg.IncrementalAlterConfigs, kmsg.OffsetDelete, kmsg.DescribeCluster,
	)
	servedByController = keys(kmsg.ApiVersions, kmsg.DescribeCluster)
)

func keys(list ...kmsg.Key) map[int16]bool {
	m := map[int16]bool{}
	for _, k := range list {
		m[k.Int16()] = true
	}
	return m
}

// gate is a connection whose requests are read, and judged, before the broker has them. It answers itself what the
// broker must not see, in turn: not before the broker has answered what came earlier.
type gate struct {
	net.Conn
	b      *broker
	ctx    context.Context // of the server: a net.Conn is given none
	served map[int16]bool

	ready []byte // of a request, not taken by the broker yet
	held  int    // bytes that are stated for it

	mu      sync.Mutex
	idle    *sync.Cond
	waiting int // requests that the broker has not answered
	closed  bool
}

func newGate(ctx context.Context, b *broker, c net.Conn, served map[int16]bool) *gate {
	g := &gate{Conn: c, b: b, ctx: ctx, served: served}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// Close implements net.Conn. It may be called often.
func (g *gate) Close() error {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.idle.Broadcast()
	g.mu.Unlock()
	if !first {
		return nil
	}
	err := g.Conn.Close()
	_ = g.b.holder.Add(-connBytes)
	g.b.inlet.forget(g)
	return err
}

// Read gives the broker the next bytes of requests that are good. It is called by one goroutine at a time.
func (g *gate) Read(p []byte) (int, error) {
	for len(g.ready) == 0 {
		_ = g.b.holder.Add(-g.held)
		g.held = 0
		if err := g.next(); err != nil {
			g.Close()
			return 0, err
		}
	}
	n := copy(p, g.ready)
	g.ready = g.ready[n:]
	return n, nil
}

// Write sends a response, which the broker writes at once.
func (g *gate) Write(p []byte) (int, error) {
	if err := g.b.holder.Add(len(p)); err != nil {
		return 0, err
	}
	defer func() { _ = g.b.holder.Add(-len(p)) }()
	_ = g.SetWriteDeadline(time.Now().Add(maxSlow))
	n, err := g.Conn.Write(p)
	g.b.traffic.out.Add(int64(n))
	g.mu.Lock()
	g.waiting--
	g.idle.Broadcast()
	g.mu.Unlock()
	return n, err
}

// errRefused closes a connection.
type errRefused string

func (e errRefused) Error() string { return string(e) }

func refusef(format string, args ...any) error { return errRefused(fmt.Sprintf(format, args...)) }

// next reads a request, and has it ready for the broker unless it is answered here.
func (g *gate) next() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = refusef("a request cannot be read: %v", r)
		}
		if _, refused := errors.AsType[errRefused](err); refused {
			g.b.log.warn(classSocket, "Closing connection from %s: %v", g.RemoteAddr(), err)
		}
	}()
	frame, err := g.frame()
	if err != nil {
		return err
	}
	if err := g.b.meter.Spend(g.ctx, requestCost+byteCost*time.Duration(len(frame))); err != nil {
		return err
	}
	r, err := parse(frame, g.served)
	if err != nil {
		return err
	}
	answer, err := g.b.judge(r)
	if err != nil {
		return err
	}
	if answer != nil {
		return g.answer(r, answer)
	}
	if r.changed {
		frame = r.encode()
	}
	g.mu.Lock()
	if !r.silent {
		g.waiting++
	}
	g.mu.Unlock()
	g.ready = frame
	return nil
}

// frame reads a request with its size. It takes room only for what has arrived.
func (g *gate) frame() ([]byte, error) {
	_ = g.SetReadDeadline(time.Now().Add(maxIdle))
	frame := make([]byte, 8, 512)
	if _, err := io.ReadFull(g.Conn, frame); err != nil {
		return nil, err
	}
	_ = g.SetReadDeadline(time.Now().Add(maxSlow))
	size, key := int(int32(binary.BigEndian.Uint32(frame))), int16(binary.BigEndian.Uint16(frame[4:]))
	limit := maxRequest
	if key == kmsg.Produce.Int16() {
		limit = maxProduce
	}
	if size < 10 || size > limit {
		return nil, refusef("a request of %d bytes, want 10 to %d", size, limit)
	}
	for missing := size + 4 - len(frame); missing > 0; missing = size + 4 - len(frame) {
		step := min(missing, readStep)
		if err := g.b.holder.Add(2 * step); err != nil { // The broker has a copy.
			return nil, err
		}
		g.held += 2 * step
		from := len(frame)
		frame = append(frame, make([]byte, step)...)
		if _, err := io.ReadFull(g.Conn, frame[from:]); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// answer sends a response of the gate's own, when it is its turn.
func (g *gate) answer(r *request, resp kmsg.Response) error {
	g.mu.Lock()
	for g.waiting > 0 && !g.closed {
		g.idle.Wait()
	}
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	buf := make([]byte, 8, 256)
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		buf = append(buf, 0)
	}
	buf = resp.AppendTo(buf)
	binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
	binary.BigEndian.PutUint32(buf[4:], uint32(r.correlation))
	_ = g.SetWriteDeadline(time.Now().Add(maxSlow))
	_, err := g.Conn.Write(buf)
	return err
}

// request is one that was read.
type request struct {
	kmsg.Request
	header      []byte // all before the body, without the size
	correlation int32
	client      string
	changed     bool // the body is no longer what came
	silent      bool // there is no response
}

// parse reads a request, of a kind that is served.
func parse(frame []byte, served map[int16]bool) (*request, error) {
	body := frame[4:]
	in := kbin.Reader{Src: body}
	key, version := in.Int16(), in.Int16()
	r := &request{correlation: in.Int32()}
	if id := in.NullableString(); id != nil {
		r.client = *id
	}
	if !served[key] {
		return nil, refusef("request %d, which this broker has not", key)
	}
	if r.Request = kmsg.RequestForKey(key); r.Request == nil {
		return nil, refusef("request %d, which nobody knows", key)
	}
	if version < 0 {
		return nil, refusef("request %d of version %d", key, version)
	}
	r.SetVersion(version)
	if r.IsFlexible() {
		kmsg.SkipTags(&in)
	}
	if !in.Ok() {
		return nil, refusef("request %d has no header", key)
	}
	r.header = body[:len(body)-len(in.Src)]
	if version > r.MaxVersion() { // The broker tells the client which versions it has.
		if key == kmsg.ApiVersions.Int16() {
			return r, nil
		}
		return nil, refusef("request %d of version %d", key, version)
	}
	if err := r.ReadFrom(in.Src); err != nil {
		return nil, refusef("request %d cannot be read: %v", key, err)
	}
	return r, nil
}

// encode is the request as it is now.
func (r *request) encode() []byte {
	frame := append(make([]byte, 4, 256), r.header...)
	frame = r.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}
