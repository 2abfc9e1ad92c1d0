package memcached

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"time"
)

const (
	maxKey  = 250
	maxLine = 2048    // without a newline, unless it is a get
	maxGet  = 1 << 20 // of a get
)

// What commands cost, measured on a real one.
const (
	commandCost = 4 * time.Microsecond
	byteCost    = time.Nanosecond
)

// conn is a client.
type conn struct {
	*server
	id      int // as a file descriptor
	net     net.Conn
	in      *bufio.Reader
	out     *bufio.Writer
	written int64 // bytes sent
	quiet   bool  // the command at hand wants no reply
	since   time.Time
	closing bool
}

// serve executes commands until the client goes.
func (c *conn) serve(ctx context.Context) {
	for !c.closing {
		line, err := c.readLine()
		if err != nil {
			break
		}
		written := c.written
		c.logf(2, "<%d %s", c.id, line)
		c.quiet = false
		if err := c.execute(tokenize(line)); err != nil {
			break
		}
		if c.in.Buffered() == 0 && c.out.Flush() != nil {
			break
		}
		if c.meter.Spend(ctx, commandCost+byteCost*time.Duration(int64(len(line))+c.written-written)) != nil {
			break
		}
	}
	c.out.Flush()
	c.net.Close()
	c.logf(2, "<%d connection closed.", c.id)
}

// Read and Write count what goes over the wire.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.net.Read(p)
	c.stats.bytesRead.Add(int64(n))
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.net.Write(p)
	c.written += int64(n)
	c.stats.bytesWritten.Add(int64(n))
	return n, err
}

// errLineTooLong ends a connection.
var errLineTooLong = errors.New("line too long")

// readLine returns a line without its end.
func (c *conn) readLine() (string, error) {
	var long []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if err == nil && long == nil {
			return strings.TrimSuffix(string(part[:len(part)-1]), "\r"), nil
		}
		long = append(long, part...)
		switch {
		case err == nil:
			return strings.TrimSuffix(string(long[:len(long)-1]), "\r"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
		isGet := bytes.HasPrefix(long, []byte("get ")) || bytes.HasPrefix(long, []byte("gets "))
		if len(long) >= maxLine && !isGet || len(long) > maxGet {
			return "", errLineTooLong
		}
	}
}

// tokenize splits a line at spaces.
func tokenize(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
}

// reply writes a line, unless the client wants none.
func (c *conn) reply(text string) {
	if c.quiet {
		c.logf(2, ">%d NOREPLY %s", c.id, text)
		return
	}
	c.logf(2, ">%d %s", c.id, text)
	c.out.WriteString(text)
	c.out.WriteString("\r\n")
}

const (
	badFormat = "CLIENT_ERROR bad command line format"
	badChunk  = "CLIENT_ERROR bad data chunk"
	badTime   = "CLIENT_ERROR invalid exptime argument"
)
