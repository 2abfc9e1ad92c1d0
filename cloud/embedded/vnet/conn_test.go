package vnet

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/nettest"
	"pgregory.net/rapid"
)

func TestConnSatisfiesNetConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		_, client, server := pair(t)
		c1, c2 = connected(t, client, server)
		return c1, c2, func() { c1.Close(); c2.Close() }, nil
	})
}

func TestHalfClose(t *testing.T) {
	_, client, server := pair(t)
	c, s := connected(t, client, server)
	if _, err := c.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if err != nil || string(got) != "question" {
		t.Fatalf("read %q, %v", got, err)
	}
	if _, err := s.Write([]byte("answer")); err != nil {
		t.Fatalf("write after the peer's half-close: %v", err)
	}
	s.Close()
	if got, err = io.ReadAll(c); err != nil || string(got) != "answer" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestAddresses(t *testing.T) {
	_, client, server := pair(t)
	l := listen(t, server, ":8080")
	if got := l.Addr().String(); got != "[::]:8080" {
		t.Errorf("listener address %s, want the wildcard as package net writes it", got)
	}
	c := dial(t, client, "10.244.1.3:8080")
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RemoteAddr().String(); got != "10.244.1.3:8080" {
		t.Errorf("client's remote address %s", got)
	}
	if got := s.LocalAddr().String(); got != "10.244.1.3:8080" {
		t.Errorf("server's local address %s", got)
	}
	if c.LocalAddr().String() != s.RemoteAddr().String() {
		t.Errorf("client is %s but the server sees %s", c.LocalAddr(), s.RemoteAddr())
	}
	if ip := c.LocalAddr().(*net.TCPAddr).IP; !ip.Equal(clientAddr.AsSlice()) {
		t.Errorf("client's local address %s", ip)
	}
}

func TestWriteWaitsForTheReader(t *testing.T) {
	_, client, server := pair(t)
	c, s := connected(t, client, server)
	if err := c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Write(make([]byte, 2*window))
	if n != window || err == nil {
		t.Fatalf("wrote %d bytes, %v; want the window's %d and a timeout", n, err, window)
	}
	if _, err := io.ReadFull(s, make([]byte, window)); err != nil {
		t.Fatal(err)
	}
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatalf("write after the window opened: %v", err)
	}
}

// TestStreamIsExact writes random chunks over a random link and reads them in other chunks.
func TestStreamIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, client, server := pair(t)
		defer client.host.Close()
		defer server.host.Close()
		link := Link{
			Loss:      rapid.SampledFrom([]float64{0, 0, 0.01}).Draw(rt, "loss"),
			Duplicate: rapid.SampledFrom([]float64{0, 0.5}).Draw(rt, "duplicate"),
			Delay:     time.Duration(rapid.IntRange(0, 300).Draw(rt, "delay")) * time.Microsecond,
			Jitter:    time.Duration(rapid.IntRange(0, 300).Draw(rt, "jitter")) * time.Microsecond,
		}
		if link != (Link{}) {
			defer n.Disturb(anywhere, link)()
		}
		c, s := connected(t, client, server)
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 2000), 1, 12).Draw(rt, "chunks")
		go func() {
			for _, b := range chunks {
				if _, err := c.Write(b); err != nil {
					t.Error(err)
				}
			}
			c.Close()
		}()
		var got bytes.Buffer
		buf := make([]byte, rapid.IntRange(1, 5000).Draw(rt, "read size"))
		if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{s}, buf); err != nil {
			rt.Fatal(err)
		}
		if want := bytes.Join(chunks, nil); !bytes.Equal(got.Bytes(), want) {
			rt.Fatalf("read %d bytes that differ from the %d written", got.Len(), len(want))
		}
	})
}

// TestWindowsShrink floods connections that nobody reads from: the network holds so much and no more,
// others go on, and everything is given back.
func TestWindowsShrink(t *testing.T) {
	n, client, server := pair(t)
	ln := listen(t, server, ":80")
	var ends []net.Conn
	flood := make([]byte, window)
	for range 2 * pressure / window {
		c := dial(t, client, "10.244.1.3:80")
		s, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, c, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Write(flood) // It may have to wait, until the end.
		}()
		if n.held.Load() <= pressure {
			<-done
		}
	}
	if held := n.held.Load(); held > pressure+window+int64(len(ends))*smallWindow {
		t.Errorf("the network holds %d bytes", held)
	}
	c := dial(t, client, "10.244.1.3:80")
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c.Write(flood)
		c.Close()
	}()
	if data, err := io.ReadAll(s); len(data) != len(flood) || err != nil {
		t.Errorf("%d bytes came through, %v", len(data), err)
	}
	s.Close()
	for _, c := range ends {
		c.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); n.held.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held after the end", n.held.Load())
		}
	}
}
