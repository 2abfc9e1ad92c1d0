package server

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// costAuth is the CPU time of one step of an authentication.
const costAuth = 150 * time.Microsecond

// errAuth is all a client is told. The log says more.
func errAuth() error { return code.Errorf(code.AuthenticationFailed, "Authentication failed.") }

func runSASLStart(k *call) (bson.D, error) { return k.saslStart(k.body, k.db, false) }

// speculate begins the authentication a client asks for in its hello. What fails is not an error:
// the client tries again by itself.
func (k *call) speculate(d value.Doc) value.Value {
	db, ok := value.Str(value.Get(d, "db"))
	if !ok {
		db = adminDB
	}
	if name, _ := value.First(d); name != "saslStart" {
		return value.Value{}
	}
	reply, err := k.saslStart(d, db, true)
	if err != nil {
		return value.Value{}
	}
	return value.Of(append(reply, bson.E{Key: "ok", Value: 1.0}))
}

func (k *call) saslStart(d value.Doc, db string, speculative bool) (bson.D, error) {
	k.cost += costAuth
	mechanism, _ := value.Str(value.Get(d, "mechanism"))
	conv, err := auth.NewConversation(mechanism, db, func(name, db string) *auth.User {
		if a := k.srv.access.get(name, db); a != nil {
			return a.user
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	conv.Speculative = speculative
	conv.SkipEmpty = value.Truthy(value.At(d, "options.skipEmptyExchange"))
	k.conn.conv = conv
	return k.saslStep(d)
}

func runSASLContinue(k *call) (bson.D, error) {
	k.cost += costAuth
	if k.conn.conv == nil {
		return nil, code.Errorf(code.ProtocolError, "No SASL session state found")
	}
	return k.saslStep(k.body)
}

// conversationID is that of the only conversation a connection has.
const conversationID = 1

func (k *call) saslStep(d value.Doc) (bson.D, error) {
	conv := k.conn.conv
	payload := value.Get(d, "payload")
	text, ok := value.Str(payload)
	if _, data, isBinary := payload.BinaryOK(); isBinary {
		text, ok = string(data), true
	}
	if !ok {
		return nil, code.Errorf(code.TypeMismatch, "Wrong type for field; expected BinData or String for payload")
	}
	was := conv.Valid()
	answer, err := conv.Step(text)
	if err != nil {
		k.conn.conv = nil
		k.logAuth(conv, err)
		return nil, errAuth()
	}
	done := was || conv.Valid() && conv.SkipEmpty
	if done {
		k.conn.conv = nil
		k.conn.login(conv.User)
		k.logAuth(conv, nil)
	}
	return bson.D{
		{Key: "conversationId", Value: conversationID},
		{Key: "done", Value: done},
		{Key: "payload", Value: []byte(answer)},
	}, nil
}

// login makes a user one of the connection's: there is one for each database.
func (c *conn) login(u *auth.User) {
	c.logout(u.DB)
	c.users = append(c.users, identity{u.Name, u.DB, u.ID})
	c.bypass = false
}

func (c *conn) logout(db string) {
	c.users = slices.DeleteFunc(c.users, func(u identity) bool { return u.db == db })
}

func (k *call) logAuth(conv *auth.Conversation, err error) {
	attr := bson.D{
		{Key: "mechanism", Value: conv.Mechanism},
		{Key: "speculative", Value: conv.Speculative},
		{Key: "principalName", Value: conv.Name},
		{Key: "authenticationDatabase", Value: conv.DB},
		{Key: "remote", Value: k.conn.remote()},
		{Key: "extraInfo", Value: bson.D{}},
	}
	if err != nil {
		attr = append(attr, bson.E{Key: "error", Value: code.Of(err).String() + ": " + err.Error()})
		k.srv.Log.Info(mlog.Access, 20249, k.conn.name(), "Authentication failed", attr)
		return
	}
	k.srv.Log.Info(mlog.Access, 20250, k.conn.name(), "Authentication succeeded", attr)
}

func runLogout(k *call) (bson.D, error) {
	k.conn.logout(k.db)
	return bson.D{}, nil
}

func runConnectionStatus(k *call) (bson.D, error) {
	privileges := k.conn.privileges()
	users, roles := bson.A{}, []auth.RoleName{}
	for _, u := range k.conn.users {
		users = append(users, bson.D{{Key: "user", Value: u.name}, {Key: "db", Value: u.db}})
		if a := k.srv.access.get(u.name, u.db); a != nil {
			k.srv.Engine.View(func(tx *engine.Tx) error {
				roles = append(roles, inherited(tx, a.user.Roles)...)
				return nil
			})
		}
	}
	info := bson.D{
		{Key: "authenticatedUsers", Value: users},
		{Key: "authenticatedUserRoles", Value: auth.RoleDocs(roles)},
	}
	if value.Truthy(value.Get(k.body, "showPrivileges")) {
		list := bson.A{}
		for _, p := range privileges {
			list = append(list, p.Doc())
		}
		info = append(info, bson.E{Key: "authenticatedUserPrivileges", Value: list})
	}
	return bson.D{{Key: "authInfo", Value: info}}, nil
}
