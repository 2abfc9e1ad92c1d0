package box

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// stream is one end of a connection of the cluster's network that is carried between processes. What
// is written goes in frames, so that datagrams stay whole and an end can say why it ended.
type stream struct {
	net.Conn
	network       string
	local, remote net.Addr
	in            *bufio.Reader
	left          int   // bytes of the frame that is being read
	end           error // once the other side has written all

	mu sync.Mutex // for writing
}

// maxFrame is the largest frame, which holds any datagram.
const maxFrame = 64 << 10

// lastFrame is the length of the frame that ends a direction; an errno follows, or 0.
const lastFrame = 0

func newStream(c *net.UnixConn) *stream {
	return &stream{Conn: c, in: bufio.NewReaderSize(c, maxFrame+8)}
}

func (s *stream) LocalAddr() net.Addr  { return s.local }
func (s *stream) RemoteAddr() net.Addr { return s.remote }

// packets reports whether frames are datagrams.
func (s *stream) packets() bool { return len(s.network) >= 3 && s.network[:3] == "udp" }

func (s *stream) Read(p []byte) (int, error) {
	if s.end != nil {
		return 0, s.end
	}
	if s.left == 0 {
		n, err := s.nextFrame()
		if err != nil {
			return 0, err
		}
		if s.packets() {
			return s.readPacket(p, n)
		}
		s.left = n
		_, _ = s.in.Discard(4)
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, s.broken(err)
}

// nextFrame looks at the length of the next frame. A deadline may pass in the middle, so nothing is
// taken before all of it is there.
func (s *stream) nextFrame() (int, error) {
	head, err := s.in.Peek(4)
	if err != nil {
		return 0, s.broken(err)
	}
	switch n := binary.BigEndian.Uint32(head); {
	case n == lastFrame:
		return 0, s.ended()
	case n > maxFrame:
		return 0, errors.New("a frame is too long")
	default:
		return int(n), nil
	}
}

// readPacket reads a frame of n bytes. What does not fit into p is lost.
func (s *stream) readPacket(p []byte, n int) (int, error) {
	frame, err := s.in.Peek(4 + n)
	if err != nil {
		return 0, s.broken(err)
	}
	copied := copy(p, frame[4:])
	_, _ = s.in.Discard(4 + n)
	return copied, nil
}

// ended reads why the other side ended.
func (s *stream) ended() error {
	frame, err := s.in.Peek(8)
	if err != nil {
		return s.broken(err)
	}
	s.end = io.EOF
	if errno := binary.BigEndian.Uint32(frame[4:]); errno != 0 {
		s.end = &net.OpError{
			Op: "read", Net: s.network, Source: s.local, Addr: s.remote,
			Err: os.NewSyscallError("read", syscall.Errno(errno)),
		}
	}
	return s.end
}

// broken is the error for a connection whose carrier failed: the other process is gone.
func (s *stream) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return &net.OpError{
			Op: "read", Net: s.network, Source: s.local, Addr: s.remote,
			Err: os.NewSyscallError("read", syscall.ECONNRESET),
		}
	}
	return err
}

func (s *stream) Write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		part := p[:min(len(p), maxFrame)]
		frame := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(part))), part}
		if _, err := frame.WriteTo(s.Conn); err != nil {
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				err = &net.OpError{
					Op: "write", Net: s.network, Source: s.local, Addr: s.remote,
					Err: os.NewSyscallError("write", errno),
				}
			}
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// packetStream is a stream of datagrams: a [net.PacketConn], by which some tell that it is one.
type packetStream struct{ *stream }

var _ net.PacketConn = packetStream{}

func (p packetStream) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, p.remote, err
}

func (p packetStream) WriteTo(b []byte, _ net.Addr) (int, error) { return p.Write(b) }

// CloseWrite tells the other side that nothing more comes.
func (s *stream) CloseWrite() error { return s.closeWith(nil) }

// closeWith tells the other side that nothing more comes, and why.
func (s *stream) closeWith(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errno syscall.Errno
	if why != nil && !errors.As(why, &errno) {
		errno = syscall.ECONNRESET
	}
	frame := binary.BigEndian.AppendUint32(nil, lastFrame)
	_, err := s.Conn.Write(binary.BigEndian.AppendUint32(frame, uint32(errno)))
	return err
}

// dialAnswer is the first frame to who asked for a connection.
type dialAnswer struct {
	Local, Remote string
	Failure       *failure `json:",omitempty"`
}

// failure is an error of the network that keeps its meaning on the way between processes.
type failure struct {
	Text    string
	Call    string        `json:",omitempty"`
	Errno   syscall.Errno `json:",omitempty"`
	Timeout bool          `json:",omitempty"`
}

func newFailure(err error) *failure {
	f := &failure{Text: err.Error()}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		f.Text, f.Timeout = op.Err.Error(), op.Timeout()
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		f.Call = call.Syscall
	}
	_ = errors.As(err, &f.Errno)
	return f
}

func (f *failure) err() error {
	switch {
	case f.Errno != 0 && f.Call != "":
		return os.NewSyscallError(f.Call, f.Errno)
	case f.Errno != 0:
		return f.Errno
	case f.Timeout:
		return os.ErrDeadlineExceeded
	}
	return errors.New(f.Text)
}

// sendAnswer and receiveAnswer are for the first frame.
func (s *stream) sendAnswer(a *dialAnswer) error {
	b, err := json.Marshal(a)
	if err == nil {
		_, err = s.Write(b)
	}
	return err
}

func (s *stream) receiveAnswer() (*dialAnswer, error) {
	buf := make([]byte, maxFrame)
	n, err := s.Read(buf)
	if err != nil {
		return nil, err
	}
	for s.left > 0 {
		m, err := s.Read(buf[n:])
		if err != nil {
			return nil, err
		}
		n += m
	}
	a := &dialAnswer{}
	return a, json.Unmarshal(buf[:n], a)
}

// address is an address as text.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }
