package shell

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/image/mongo/internal/wire"
	"github.com/aiopslab/aiopslab/kit"
)

// connectTimeout is how long the shell waits for a server.
const connectTimeout = 2 * time.Second

// client is a connection to a server.
type client struct {
	address string
	conn    net.Conn
	r       *bufio.Reader
	lastID  int32
	session bson.Binary
}

// connectError is why there is no connection, in the shells' words.
type connectError struct {
	name    string // of the error in mongosh
	message string
	legacy  string
}

func (e *connectError) Error() string { return e.name + ": " + e.message }

// serverError is the reply to a command that failed.
type serverError struct{ reply value.Doc }

func (e *serverError) Error() string {
	msg, _ := value.Str(value.Get(e.reply, "errmsg"))
	return msg
}

// dial connects to a server and says hello.
func dial(ctx context.Context, env *kit.Env, o *target, app string) (*client, error) {
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := env.Net.DialContext(dialing, "tcp", o.address)
	if err != nil {
		return nil, dialError(o.address, err)
	}
	if o.tls != nil {
		secure := tls.Client(conn, o.tls)
		if err := secure.HandshakeContext(dialing); err != nil {
			conn.Close()
			return nil, &connectError{
				"MongoServerSelectionError", err.Error(),
				fmt.Sprintf("couldn't connect to server %s, connection attempt failed: SSLHandshakeFailed: %v",
					o.address, err),
			}
		}
		conn = secure
	}
	c := &client{address: o.address, conn: conn, r: bufio.NewReader(conn), session: value.NewUUID()}
	conn.SetDeadline(time.Now().Add(connectTimeout))
	_, err = c.run(ctx, "admin", value.Make(bson.D{
		{Key: "isMaster", Value: 1},
		{Key: "client", Value: bson.D{
			{Key: "application", Value: bson.D{{Key: "name", Value: app}}},
			{Key: "driver", Value: bson.D{
				{Key: "name", Value: "MongoDB Internal Client"},
				{Key: "version", Value: version},
			}},
			{Key: "os", Value: bson.D{
				{Key: "type", Value: "Linux"},
				{Key: "name", Value: "Ubuntu"},
				{Key: "architecture", Value: "x86_64"},
				{Key: "version", Value: "18.04"},
			}},
		}},
	}))
	conn.SetDeadline(time.Time{})
	if err != nil {
		conn.Close()
		return nil, &connectError{
			"MongoServerSelectionError", "connection <monitor> to " + o.address + " closed",
			fmt.Sprintf("network error while attempting to run command 'isMaster' on host '%s' ", o.address),
		}
	}
	return c, nil
}

func dialError(address string, err error) error {
	host, _, _ := net.SplitHostPort(address)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return &connectError{
			"MongoNetworkError", "getaddrinfo ENOTFOUND " + host,
			fmt.Sprintf("couldn't connect to server %s, connection attempt failed: HostNotFound: Could not find "+
				"address for %s: SocketException: Host not found (authoritative)", address, address),
		}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &connectError{
			"MongoNetworkError", "connect ECONNREFUSED " + address,
			fmt.Sprintf("couldn't connect to server %s, connection attempt failed: SocketException: Error connecting "+
				"to %s :: caused by :: Connection refused", address, address),
		}
	}
	return &connectError{
		"MongoServerSelectionError", "Server selection timed out after 2000 ms",
		fmt.Sprintf("couldn't connect to server %s, connection attempt failed: NetworkTimeout: Error connecting to "+
			"%s :: caused by :: Socket operation timed out", address, address),
	}
}

func (c *client) close() { c.conn.Close() }

// run runs a command. A reply that is not ok is a serverError.
func (c *client) run(ctx context.Context, db string, cmd value.Doc) (value.Doc, error) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	var b value.Builder
	for name, v := range value.Fields(cmd) {
		b.Add(name, v)
	}
	if name, _ := value.First(cmd); name != "isMaster" && name != "saslStart" && name != "saslContinue" &&
		value.Missing(value.Get(cmd, "lsid")) {
		b.Add("lsid", value.Of(bson.D{{Key: "id", Value: c.session}}))
	}
	b.Add("$db", value.String(db))
	c.lastID++
	if _, err := c.conn.Write(wire.Reply(c.lastID, &wire.Request{}, b.Doc(), false)); err != nil {
		return nil, err
	}
	reply, err := wire.Read(c.r)
	if err != nil {
		return nil, err
	}
	if !value.Truthy(value.Get(reply.Body, "ok")) {
		return reply.Body, &serverError{reply.Body}
	}
	return reply.Body, nil
}

// auth proves to be a user.
func (c *client) auth(ctx context.Context, db, user, password, mechanism string) error {
	hash := scram.SHA256
	if mechanism == "" {
		mechanism = auth.SHA256
	}
	var sc *scram.Client
	var err error
	if mechanism == auth.SHA1 {
		hash = scram.SHA1
		sum := md5.Sum([]byte(user + ":mongo:" + password))
		sc, err = hash.NewClientUnprepped(user, hex.EncodeToString(sum[:]), "")
	} else {
		sc, err = hash.NewClient(user, password, "")
	}
	if err != nil {
		return err
	}
	conv := sc.NewConversation()
	step, err := conv.Step("")
	if err != nil {
		return err
	}
	cmd := bson.D{
		{Key: "saslStart", Value: 1},
		{Key: "mechanism", Value: mechanism},
		{Key: "payload", Value: []byte(step)},
		{Key: "options", Value: bson.D{{Key: "skipEmptyExchange", Value: true}}},
	}
	for {
		reply, err := c.run(ctx, db, value.Make(cmd))
		if err != nil {
			return err
		}
		if value.Truthy(value.Get(reply, "done")) && conv.Done() {
			return nil
		}
		_, payload, _ := value.Get(reply, "payload").BinaryOK()
		if step, err = conv.Step(string(payload)); err != nil {
			return err
		}
		if value.Truthy(value.Get(reply, "done")) {
			return nil
		}
		cmd = bson.D{
			{Key: "saslContinue", Value: 1},
			{Key: "conversationId", Value: value.Get(reply, "conversationId")},
			{Key: "payload", Value: []byte(step)},
		}
	}
}
