package agnhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"time"
)

// runner is something the sub-command net can do: it takes options and writes what it did.
type runner func(ctx context.Context, out *log.Logger, options []byte) error

// runners are what net can do, by name. Both are about a connection one side of which is closed:
// the client is then in the state CLOSE_WAIT, which address translation must not forget.
func (n *netTester) runners() map[string]runner {
	return map[string]runner{
		"nat-closewait-client": n.closeWaitClient,
		"nat-closewait-server": n.closeWaitServer,
	}
}

// closeWaitServer takes one connection and closes its own direction of it.
func (n *netTester) closeWaitServer(ctx context.Context, out *log.Logger, options []byte) error {
	var o struct {
		LocalAddr             string
		PostFinTimeoutSeconds int
	}
	if err := json.Unmarshal(options, &o); err != nil {
		return fmt.Errorf("invalid options JSON: %w", err)
	}
	out.Printf("Run %v", o)
	ln, err := n.env.Net.Listen("tcp", o.LocalAddr)
	if err != nil {
		return err
	}
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	out.Printf("Server listening on %v", ln.Addr())
	conn, err := ln.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	out.Printf("Client connected")
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the connection cannot be half-closed")
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	out.Printf("Server sent FIN, waiting %v seconds", o.PostFinTimeoutSeconds)
	if err := sleep(ctx, time.Duration(o.PostFinTimeoutSeconds)*time.Second); err != nil {
		return err
	}
	out.Printf("Done")
	return nil
}

// closeWaitClient connects and waits for the server to close its direction.
func (n *netTester) closeWaitClient(ctx context.Context, out *log.Logger, options []byte) error {
	var o struct {
		RemoteAddr            string
		TimeoutSeconds        int
		PostFinTimeoutSeconds int
		LeakConnection        bool
	}
	if err := json.Unmarshal(options, &o); err != nil {
		return fmt.Errorf("invalid options JSON: %w", err)
	}
	out.Printf("Run %v", o)
	conn, err := n.env.Net.DialContext(ctx, "tcp", o.RemoteAddr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if !o.LeakConnection { // A leaked connection is closed with the program.
		defer conn.Close()
		defer stop()
	}
	out.Printf("Connected to server")
	if o.TimeoutSeconds > 0 {
		if err := conn.SetReadDeadline(time.Now().Add(time.Duration(o.TimeoutSeconds) * time.Second)); err != nil {
			return err
		}
	}
	size, err := conn.Read(make([]byte, 1))
	switch {
	case size != 0:
		return errors.New("got data but expected EOF")
	case err != nil && err != io.EOF:
		return err
	}
	out.Printf("Server has half-closed the connection, waiting %v seconds", o.PostFinTimeoutSeconds)
	if o.LeakConnection {
		out.Printf("Leaking client connection")
	}
	if err := sleep(ctx, time.Duration(o.PostFinTimeoutSeconds)*time.Second); err != nil {
		return err
	}
	out.Printf("Done")
	return nil
}
