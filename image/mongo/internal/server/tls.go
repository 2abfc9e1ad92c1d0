package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
)

// handshakeTimeout is how long a client may take for its TLS handshake.
const handshakeTimeout = 30 * time.Second

// tlsCost is the CPU time of a handshake.
const tlsCost = 2 * time.Millisecond

// recordHandshake is the first byte of a TLS connection.
const recordHandshake = 0x16

// secure looks at the first bytes a client sends and does a TLS handshake if it wants one. It
// returns nil if the connection stays as it is. What the configuration does not allow is an error.
func (c *conn) secure(ctx context.Context, r *bufio.Reader) (net.Conn, error) {
	first, err := r.Peek(1)
	if err != nil {
		return nil, net.ErrClosed // It left without a word.
	}
	wanted := first[0] == recordHandshake
	switch {
	case !wanted && c.srv.TLSMode == "requireTLS":
		return nil, code.Errorf(code.SSLHandshakeFailed, "The server is configured to only allow SSL connections")
	case !wanted:
		return nil, nil
	case c.srv.TLS == nil:
		return nil, code.Errorf(code.SSLHandshakeFailed,
			"SSL handshake received but server is started without SSL support")
	}
	if err := c.spend(ctx, tlsCost); err != nil {
		return nil, err
	}
	conn := tls.Server(&peeked{c.nc, r}, c.srv.TLS)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, c.handshakeError(err)
	}
	return conn, nil
}

// handshakeError says what went wrong in OpenSSL's words.
func (c *conn) handshakeError(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return code.Errorf(code.SSLHandshakeFailed, "SSL handshake failed: connection closed by peer")
	case strings.Contains(text, "didn't provide a certificate"):
		c.srv.Log.Error(mlog.Network, 23255, c.name(), "No SSL certificate provided by peer; connection rejected", nil)
		text = "no SSL certificate provided by peer; connection rejected"
	case strings.Contains(text, "failed to verify certificate"):
		text = "SSL peer certificate validation failed: " +
			strings.TrimPrefix(text, "tls: failed to verify certificate: ")
	case strings.Contains(text, "remote error: tls:"):
		text = "error:SSL routines:ssl3_read_bytes:tlsv1 alert " + strings.TrimPrefix(text, "remote error: tls: ")
	}
	return code.Errorf(code.SSLHandshakeFailed, "%s", text)
}

// peeked is a connection whose first bytes were read into a buffer.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }
