package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxInline = 64 << 10
	maxArgs   = 1 << 20
	maxBulk   = 512 << 20
)

// protocolError is something that is no command. The client is told and disconnected.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// readCommand reads a command: an array of bulk strings, or a line as people type it. An empty line
// is an empty command. What it takes is told to hold before it is there.
func readCommand(r *bufio.Reader, hold func(n int) error) ([]string, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "*") {
		args, err := splitArgs(line)
		if err != nil {
			return nil, protocolError(err.Error() + " in request")
		}
		return args, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n > maxArgs {
		return nil, protocolError("invalid multibulk length")
	}
	var args []string
	for range n {
		if line, err = readLine(r); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(line, "$") {
			got := "\\x00"
			if line != "" {
				got = line[:1]
			}
			return nil, protocolError(fmt.Sprintf("expected '$', got '%s'", got))
		}
		size, err := strconv.Atoi(line[1:])
		if err != nil || size < 0 || size > maxBulk {
			return nil, protocolError("invalid bulk length")
		}
		data, err := readN(r, size+2, hold)
		if err != nil {
			return nil, err
		}
		args = append(args, string(data[:size]))
	}
	return args, nil
}

// readN reads n bytes. Memory is taken as they come, not as they are announced.
func readN(r *bufio.Reader, n int, hold func(n int) error) ([]byte, error) {
	var b bytes.Buffer
	for b.Len() < n {
		part := min(n-b.Len(), maxInline)
		if err := hold(copies * part); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(&b, r, int64(part)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// free is for what is not counted: replies, and files, which a container writes itself.
func free(int) error { return nil }

// copies is how often an argument is in memory while it is read and executed.
const copies = 3

func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		b.Write(part)
		if err == nil {
			return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if b.Len() > maxInline {
			return "", protocolError("too big inline request")
		}
	}
}

var errQuotes = errors.New("unbalanced quotes")

// splitArgs splits a line into arguments, which may be quoted as in C.
func splitArgs(line string) (args []string, err error) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		var b strings.Builder
		var quote byte
		for ; i < len(line); i++ {
			c := line[i]
			switch {
			case quote == 0 && isSpace(c):
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				if i+1 < len(line) && !isSpace(line[i+1]) {
					return nil, errQuotes
				}
				quote = 0
				continue
			case quote == '"' && c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) &&
				isHex(line[i+3]):
				n, _ := strconv.ParseUint(line[i+2:i+4], 16, 8)
				b.WriteByte(byte(n))
				i += 3
				continue
			case quote == '"' && c == '\\' && i+1 < len(line):
				i++
				if e := strings.IndexByte("nrtba", line[i]); e >= 0 {
					b.WriteByte("\n\r\t\b\a"[e])
				} else {
					b.WriteByte(line[i])
				}
				continue
			case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
				i++
				b.WriteByte('\'')
				continue
			default:
				b.WriteByte(c)
				continue
			}
			break
		}
		if quote != 0 {
			return nil, errQuotes
		}
		args = append(args, b.String())
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// encode writes a command as clients send it.
func encode(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// Kinds of replies, by their first character.
const (
	simple  = '+'
	failure = '-'
	integer = ':'
	bulk    = '$'
	array   = '*'
)

// reply is a parsed reply.
type reply struct {
	kind  byte // one of the above, or one of RESP 3
	text  string
	null  bool
	items []reply
}

// readReply reads a reply.
func readReply(r *bufio.Reader) (reply, error) {
	line, err := readLine(r)
	if err != nil {
		return reply{}, err
	}
	if line == "" {
		return reply{}, protocolError("empty reply")
	}
	rep := reply{kind: line[0], text: line[1:]}
	switch rep.kind {
	case bulk, '=', '!':
		n, err := strconv.Atoi(rep.text)
		if err != nil || n > maxBulk {
			return rep, protocolError("invalid bulk length")
		}
		if n < 0 {
			return reply{kind: bulk, null: true}, nil
		}
		data, err := readN(r, n+2, free)
		if err != nil {
			return rep, err
		}
		rep.text = string(data[:n])
	case array, '~', '>', '%':
		n, err := strconv.Atoi(rep.text)
		if err != nil || n > maxArgs {
			return rep, protocolError("invalid array length")
		}
		if n < 0 {
			return reply{kind: array, null: true}, nil
		}
		if rep.kind == '%' {
			n *= 2
		}
		for range n {
			item, err := readReply(r)
			if err != nil {
				return rep, err
			}
			rep.items = append(rep.items, item)
		}
	case '_':
		rep.null = true
	}
	return rep, nil
}

// parseReply parses a reply that is complete.
func parseReply(data []byte) reply {
	r, _ := readReply(bufio.NewReader(strings.NewReader(string(data))))
	return r
}
