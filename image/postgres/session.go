package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xdg-go/scram"
)

const (
	sessionBytes  = 64 << 10
	maxMessage    = 1 << 20
	maxStatements = 500
	authTimeout   = 30 * time.Second
	// idleTimeout is how long a transaction that has written may keep all others waiting and do nothing.
	idleTimeout = time.Minute
)

// session is a connection.
type session struct {
	*server
	facts
	engine *engine
	conn   net.Conn
	be     *pgproto3.Backend
	types  *pgtype.Map
	secret uint32
	app    string
	since  time.Time

	tx    byte // I, T or E
	owner bool // the turn is ours until the transaction ends

	statements map[string]*prepared
	portals    map[string]*portal

	watch   sync.Mutex // for what follows, which others look at
	state   string
	query   string
	began   time.Time
	stop    context.CancelCauseFunc
	endWith string
}

func (n *session) reset() {
	n.tx, n.statements, n.portals = 'I', map[string]*prepared{}, map[string]*portal{}
	n.types, n.state = pgtype.NewMap(), "idle"
}

// cancel ends the statement that is running.
func (n *session) cancel() {
	n.watch.Lock()
	defer n.watch.Unlock()
	if n.stop != nil {
		n.stop(errUserCancel)
	}
}

// terminate ends the session.
func (n *session) terminate(why string) {
	n.watch.Lock()
	n.endWith = why
	n.watch.Unlock()
	n.cancel()
	_ = n.conn.SetReadDeadline(time.Now())
}

func (n *session) ending() string {
	n.watch.Lock()
	defer n.watch.Unlock()
	return n.endWith
}

// serve talks to a client until it goes.
func (n *session) serve(ctx context.Context) {
	if n.holder.Add(sessionBytes) != nil {
		return
	}
	defer func() { _ = n.holder.Add(-sessionBytes) }()
	_ = n.conn.SetDeadline(time.Now().Add(authTimeout))
	n.be = pgproto3.NewBackend(n.conn, n.conn)
	n.be.SetMaxBodyLen(maxMessage)
	if err := n.start(); err != nil {
		if f, ok := errors.AsType[*failure](err); ok {
			n.log.line(n.pid, f.severity, "%s", f.message)
			n.be.Send(f.response())
			_ = n.be.Flush()
		}
		if n.pid != 0 {
			n.server.leave(n)
		}
		return
	}
	defer n.server.leave(n)
	defer n.leave(ctx)
	_ = n.conn.SetDeadline(time.Time{})
	if n.ending() != "" { // It was told to end in the meantime.
		return
	}
	n.loop(ctx)
}

// leave gives back what the session keeps from others.
func (n *session) leave(ctx context.Context) {
	if n.owner {
		_, _ = n.engine.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // There may be nothing to roll back.
		n.owner = false
		n.engine.give()
	}
}

func fatal(code, message string) error {
	return &failure{severity: "FATAL", code: code, message: message}
}

// start reads who the client is, and lets it in.
func (n *session) start() error {
	var hello *pgproto3.StartupMessage
	for range 3 { // It may ask for encryption first.
		m, err := n.be.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		switch q := m.(type) {
		case *pgproto3.StartupMessage:
			hello = q
		case *pgproto3.CancelRequest:
			n.cancelOther(q)
			return net.ErrClosed
		default:
			if _, err := n.conn.Write([]byte("N")); err != nil {
				return err
			}
			continue
		}
		break
	}
	if hello == nil {
		return net.ErrClosed
	}
	n.user, n.database = hello.Parameters["user"], hello.Parameters["database"]
	n.app = hello.Parameters["application_name"]
	if len(n.app) > 63 {
		n.app = n.app[:63]
	}
	if n.user == "" {
		return fatal(codeInvalidAuth, "no PostgreSQL user name specified in startup packet")
	}
	if n.database == "" {
		n.database = n.user
	}
	if err := n.authenticate(); err != nil {
		return err
	}
	if n.engine = n.engines[n.database]; n.engine == nil {
		return fatal(codeNoDatabase, `database "`+n.database+`" does not exist`)
	}
	if err := n.enter(n); err != nil {
		return err
	}
	var secret [4]byte
	rand.Read(secret[:])
	n.secret = binary.BigEndian.Uint32(secret[:])
	n.be.Send(&pgproto3.AuthenticationOk{})
	for _, p := range [][2]string{
		{"server_version", Version},
		{"server_encoding", "UTF8"},
		{"client_encoding", "UTF8"},
		{"DateStyle", "ISO, MDY"},
		{"TimeZone", "UTC"},
		{"integer_datetimes", "on"},
		{"standard_conforming_strings", "on"},
		{"application_name", n.app},
	} {
		n.be.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	n.be.Send(&pgproto3.BackendKeyData{ProcessID: uint32(n.pid), SecretKey: secret[:]})
	return nil
}

// cancelOther ends the statement of another connection, whose secret the client knows.
func (n *session) cancelOther(q *pgproto3.CancelRequest) {
	for _, one := range n.list() {
		if uint32(one.pid) == q.ProcessID && len(q.SecretKey) == 4 &&
			binary.BigEndian.Uint32(q.SecretKey) == one.secret {
			one.cancel()
		}
	}
}

// authenticate wants the password, except from the container itself.
func (n *session) authenticate() error {
	refused := fatal(codeInvalidPassword, `password authentication failed for user "`+n.user+`"`)
	r, known := n.roles.get(n.user)
	if host, _, err := net.SplitHostPort(n.conn.RemoteAddr().String()); n.settings.trust ||
		err == nil && net.ParseIP(host).IsLoopback() {
		if !known {
			return fatal(codeInvalidAuth, `role "`+n.user+`" does not exist`)
		}
		return nil
	}
	n.be.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}})
	if err := n.be.Flush(); err != nil {
		return err
	}
	if err := n.be.SetAuthType(pgproto3.AuthTypeSASL); err != nil {
		return err
	}
	m, err := n.be.Receive()
	if err != nil {
		return err
	}
	first, ok := m.(*pgproto3.SASLInitialResponse)
	if !ok || first.AuthMechanism != "SCRAM-SHA-256" {
		return fatal(codeProtocol, "expected SASL response")
	}
	if !known || r.noPass || !r.login {
		return refused
	}
	srv, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return r.stored, nil })
	if err != nil {
		return err
	}
	talk := srv.NewConversation()
	answer, err := talk.Step(string(first.Data))
	if err != nil {
		return refused
	}
	n.be.Send(&pgproto3.AuthenticationSASLContinue{Data: []byte(answer)})
	if err := n.be.Flush(); err != nil {
		return err
	}
	if err := n.be.SetAuthType(pgproto3.AuthTypeSASLContinue); err != nil {
		return err
	}
	if m, err = n.be.Receive(); err != nil {
		return err
	}
	second, ok := m.(*pgproto3.SASLResponse)
	if !ok {
		return fatal(codeProtocol, "expected SASL response")
	}
	if answer, err = talk.Step(string(second.Data)); err != nil || !talk.Valid() {
		return refused
	}
	n.be.Send(&pgproto3.AuthenticationSASLFinal{Data: []byte(answer)})
	return nil
}

// become notes what others are shown.
func (n *session) become(state, query string, stop context.CancelCauseFunc) {
	n.watch.Lock()
	defer n.watch.Unlock()
	n.state, n.began, n.stop = state, time.Now(), stop
	if query != "" {
		n.query = query
	}
}

func (n *session) rest() {
	state := map[byte]string{'I': "idle", 'T': "idle in transaction", 'E': "idle in transaction (aborted)"}[n.tx]
	n.become(state, "", nil)
}

// loop answers messages.
func (n *session) loop(ctx context.Context) {
	ready := func() error {
		n.rest()
		n.be.Send(&pgproto3.ReadyForQuery{TxStatus: n.tx})
		return n.flush()
	}
	if ready() != nil {
		return
	}
	failed := false // All is skipped until the next Sync.
	for {
		if n.owner {
			_ = n.conn.SetReadDeadline(time.Now().Add(idleTimeout))
		} else {
			_ = n.conn.SetReadDeadline(time.Time{})
		}
		if n.ending() != "" {
			_ = n.conn.SetReadDeadline(time.Now())
		}
		m, err := n.be.Receive()
		if err != nil {
			n.farewell(err)
			return
		}
		switch q := m.(type) {
		case *pgproto3.Terminate:
			return
		case *pgproto3.Sync:
			failed = false
			err = ready()
		case *pgproto3.Query:
			n.simple(ctx, q.String)
			err = ready()
		case *pgproto3.Flush:
			err = n.flush()
		default:
			if failed {
				continue
			}
			if e := n.extended(ctx, m); e != nil {
				n.report(explain(ctx, e))
				failed = true
			}
		}
		if err != nil {
			return
		}
	}
}

// flush sends what was said, to a client that takes it.
func (n *session) flush() error {
	_ = n.conn.SetWriteDeadline(time.Now().Add(authTimeout))
	return n.be.Flush()
}

// farewell tells a client why it is no longer served.
func (n *session) farewell(err error) {
	f := &failure{severity: "FATAL"}
	switch {
	case n.ending() != "":
		f.code, f.message = codeShutdown, n.ending()
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.code, f.message = codeIdleTransaction, "terminating connection due to idle-in-transaction timeout"
	case strings.Contains(err.Error(), "body") || strings.Contains(err.Error(), "unknown message"):
		f.code, f.message = codeProtocol, "invalid frontend message"
	default:
		return
	}
	n.log.line(n.pid, "FATAL", "%s", f.message)
	_ = n.conn.SetWriteDeadline(time.Now().Add(time.Second))
	n.be.Send(f.response())
	_ = n.be.Flush()
}

// report tells a client of an error, and the log.
func (n *session) report(f *failure) {
	if n.tx == 'T' {
		n.tx = 'E'
	}
	n.log.line(n.pid, f.severity, "%s", f.message)
	n.watch.Lock()
	query := n.query
	n.watch.Unlock()
	n.log.line(n.pid, "STATEMENT", "%.1000s", query)
	n.be.Send(f.response())
}
