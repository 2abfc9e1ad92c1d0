// Package seat has agents of other people join a group as MCP clients. Each has a seat of its own: an MCP server at an
// address of its own, with a key of its own, whose tools are next_message, the actions of the lab that a member has,
// and report_result. What the client calls, the group is told as it is told what an agent over A2A says.
//
//	hall, err := seat.Open("127.0.0.1:0")
//	s := hall.Seat(seat.Config{Name: "geo", Key: key, Actions: actions, ...})
//	call, err := s.Say(ctx, "TASK: ...")   // the client gets the message, and calls a tool
//	call, err = s.Say(ctx, "what came of it")
//	s.Leave()
//
// A client may be anything, so a seat bounds what it sends, how much of it is under way at once and how often it calls
// in vain. Who has not the key gets nothing.
package seat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci/mcptool"
)

const (
	// maxBody is how long a request may be.
	maxBody = 128 << 10
	// headerTimeout is how long its header may take, and bodyTimeout all of it.
	headerTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second
	// closeTimeout is how long clients have to hear that it is over.
	closeTimeout = 2 * time.Second
)

// path is where the seats are, each under the name of its service.
const path = "/mcp/"

// Hall is where the seats are. It is safe for concurrent use.
type Hall struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	mu    sync.Mutex
	seats map[string]*Seat
}

// CheckListen says what is wrong with an address to listen on. It must be this machine's own: keys go over it.
func CheckListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address to listen on; write it as 127.0.0.1:8091", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not this machine's own: keys would be sent unencrypted. Listen on 127.0.0.1, and "+
			"have a proxy with TLS or a tunnel lead there", host)
	}
	return nil
}

// Open begins to listen.
func Open(address string) (*Hall, error) {
	if err := CheckListen(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	h := &Hall{listener: l, served: make(chan struct{}), seats: map[string]*Seat{}}
	h.server = &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(h.served)
		_ = h.server.Serve(l) // Close ends it.
	}()
	return h, nil
}

// Close ends all seats.
func (h *Hall) Close() error {
	h.mu.Lock()
	for _, s := range h.seats {
		s.Close(errors.New("the run is over"))
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if h.server.Shutdown(ctx) != nil { // Clients are told that it is over, but nobody waits for them.
		_ = h.server.Close()
	}
	<-h.served
	return nil
}

// Seat makes a seat.
func (h *Hall) Seat(c Config) *Seat {
	s := newSeat(c)
	s.URL = (&url.URL{Scheme: "http", Host: h.listener.Addr().String(), Path: path + c.Name}).String()
	s.handler = mcptool.Guard(c.Key, mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s.server },
		// No client can have sessions pile up.
		&mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxBody}))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats[path+c.Name] = s
	return s
}

// ServeHTTP leads a client to its seat.
func (h *Hall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	s := h.seats[r.URL.Path]
	h.mu.Unlock()
	if s == nil {
		http.NotFound(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}
