package server

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// logger is a writer of a log that calls accepted when a connection was taken.
type logger struct {
	io.Writer
	accepted func()
}

func (l logger) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Connection accepted")) {
		l.accepted()
	}
	return l.Writer.Write(line)
}

// A connection that is taken while the server shuts down is waited for like the others: whoever closes the
// engine next closes it under nobody's hands. That the two do not race is for the race detector to see.
func TestCloseWaitsForWhatWasJustAccepted(t *testing.T) {
	var srv *Server
	closed := make(chan struct{})
	log := logger{io.Discard, func() {
		go func() {
			defer close(closed)
			srv.Close()
		}()
		<-srv.stopping
	}}
	srv = New(Config{Env: kittest.New(t).Machine("db", "10.0.0.1").Env("mongod"), Log: mlog.New(log)})
	here, there := net.Pipe()
	defer there.Close()
	srv.accept(t.Context(), here)
	<-closed
	if n := srv.Connections(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
}
