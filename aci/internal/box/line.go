package box

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// message is what the environment and the shell's process say to each other. One field is set.
type message struct {
	// To the shell.
	Set  *setting `json:",omitempty"` // first of all
	Run  *order   `json:",omitempty"` // with the file that the output goes to
	Stop bool     `json:",omitempty"` // end the command: it takes too much memory
	// Hold and Release have the command's time stand still, and go on.
	Hold, Release bool `json:",omitempty"`

	// To the environment.
	Done *report      `json:",omitempty"`
	Dial *dialRequest `json:",omitempty"` // with a socket, see stream
	Tool *toolRequest `json:",omitempty"` // with a socket for the answer, and standard input, output and error
}

// setting is the world of the shell.
type setting struct {
	DNS    string
	Search []string
	Limits limits
}

// order is a command to run. Texts of the agent's need not be UTF-8.
type order struct {
	Command []byte
	Timeout int64 // nanoseconds
}

// report is what came of a command.
type report struct {
	Status   int
	Dir      []byte // where the shell is now
	TimedOut bool
	TooLarge bool
}

type dialRequest struct{ Network, Address string }

// toolRequest asks for a process.
type toolRequest struct {
	Args [][]byte
	Dir  []byte
	Vars map[string][]byte
}

// toolAnswer is how a process ended.
type toolAnswer struct {
	Status int
	Note   string // what the agent should know about the end
}

const (
	maxMessage = 64 << 20 // bytes
	maxPassed  = 8        // files with one message
)

// line carries messages and open files between two processes.
type line struct {
	conn *net.UnixConn
	mu   sync.Mutex // for sending
}

// newLine takes the socket over.
func newLine(f *os.File) (*line, error) {
	conn, err := unixConn(f)
	if err != nil {
		return nil, err
	}
	return &line{conn: conn}, nil
}

func (l *line) close() error { return l.conn.Close() }

// send sends a message with files, which stay the caller's.
func (l *line) send(m any, files ...*os.File) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(body))
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The files come with the length.
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	n, _, err := l.conn.WriteMsgUnix(head, rights, nil)
	if err == nil && n < len(head) {
		_, err = l.conn.Write(head[n:])
	}
	if err == nil {
		_, err = l.conn.Write(body)
	}
	return err
}

// receive waits for a message and the files with it, which are the caller's.
func (l *line) receive(m any) (files []*os.File, err error) {
	head := make([]byte, 4)
	rights := make([]byte, syscall.CmsgSpace(4*maxPassed))
	n, got, _, _, err := l.conn.ReadMsgUnix(head, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if files, err = passedFiles(rights[:got], err); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	if _, err = io.ReadFull(l.conn, head[n:]); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return files, fmt.Errorf("a message of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err = io.ReadFull(l.conn, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, m)
}

// passedFiles are the files in a control message.
func passedFiles(rights []byte, failed error) (files []*os.File, err error) {
	if failed != nil || len(rights) == 0 {
		return nil, failed
	}
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// unixConn takes a socket over.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("no Unix socket")
	}
	return unix, nil
}
