package auth

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// The mechanisms of authentication.
const (
	SHA1   = "SCRAM-SHA-1"
	SHA256 = "SCRAM-SHA-256"
)

// Mechanisms are all authentication mechanisms that the server offers.
var Mechanisms = []string{SHA1, SHA256}

// mechanism is what differs between them.
type mechanism struct {
	hash       scram.HashGeneratorFcn
	iterations int
	salt       int // bytes
}

var mechanisms = map[string]mechanism{
	SHA1:   {scram.SHA1, 10000, 16},
	SHA256: {scram.SHA256, 15000, 28},
}

// credential is what is kept of a password.
type credential struct {
	iterations           int
	salt                 []byte
	storedKey, serverKey []byte
}

func (c credential) doc() bson.D {
	b64 := base64.StdEncoding.EncodeToString
	return bson.D{
		{Key: "iterationCount", Value: c.iterations},
		{Key: "salt", Value: b64(c.salt)},
		{Key: "storedKey", Value: b64(c.storedKey)},
		{Key: "serverKey", Value: b64(c.serverKey)},
	}
}

func parseCredential(d value.Doc) (c credential, ok bool) {
	n, ok := value.Int(value.Get(d, "iterationCount"))
	c.iterations = int(n)
	for name, to := range map[string]*[]byte{"salt": &c.salt, "storedKey": &c.storedKey, "serverKey": &c.serverKey} {
		s, isText := value.Str(value.Get(d, name))
		var err error
		*to, err = base64.StdEncoding.DecodeString(s)
		ok = ok && isText && err == nil
	}
	return c, ok
}

// SetPassword makes the credentials of a password for some mechanisms.
func (u *User) SetPassword(password string, names []string) error {
	u.credentials = map[string]credential{}
	for _, name := range names {
		m, ok := mechanisms[name]
		if !ok {
			return code.Errorf(code.BadValue, "Unknown auth mechanism '%s'", name)
		}
		var client *scram.Client
		var err error
		if name == SHA1 { // Of a digest, and without preparation.
			client, err = m.hash.NewClientUnprepped(u.Name, legacyDigest(u.Name, password), "")
		} else {
			client, err = m.hash.NewClient(u.Name, password, "")
		}
		if err != nil {
			return code.Errorf(50692, "Error preflighting UTF-8 conversion: %v", err)
		}
		salt := make([]byte, m.salt)
		rand.Read(salt)
		keys, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: m.iterations})
		if err != nil {
			return err
		}
		u.credentials[name] = credential{m.iterations, salt, keys.StoredKey, keys.ServerKey}
	}
	return nil
}

func legacyDigest(name, password string) string {
	sum := md5.Sum([]byte(name + ":mongo:" + password))
	return hex.EncodeToString(sum[:])
}

// Conversation is the authentication of a client.
type Conversation struct {
	Mechanism string
	DB        string
	User      *User // set once the client has named a user that exists
	Name      string
	Speculative,
	// SkipEmpty is set if the client does without the last exchange, which says nothing.
	SkipEmpty bool

	server *scram.ServerConversation
}

// errNoUser ends a conversation with a user there is not.
var errNoUser = errors.New("no such user")

// NewConversation begins an authentication with a database. The users are found by lookup.
func NewConversation(mechanism, db string, lookup func(name, db string) *User) (*Conversation, error) {
	m, ok := mechanisms[mechanism]
	if !ok {
		return nil, code.Errorf(code.MechanismUnavailable,
			"Received authentication for mechanism %s which is unknown or not enabled", mechanism)
	}
	c := &Conversation{Mechanism: mechanism, DB: db}
	server, err := m.hash.NewServer(func(name string) (scram.StoredCredentials, error) {
		c.Name = name
		u := lookup(name, db)
		if u == nil {
			return scram.StoredCredentials{}, errNoUser
		}
		k, ok := u.credentials[mechanism]
		if !ok {
			return scram.StoredCredentials{}, fmt.Errorf("user has no %s credentials", mechanism)
		}
		c.User = u
		return scram.StoredCredentials{
			KeyFactors: scram.KeyFactors{Salt: string(k.salt), Iters: k.iterations},
			StoredKey:  k.storedKey, ServerKey: k.serverKey,
		}, nil
	})
	if err != nil {
		return nil, err
	}
	c.server = server.NewConversation()
	return c, nil
}

// Step answers a client's message. The error, which is for the log, says why authentication failed.
func (c *Conversation) Step(payload string) (answer string, err error) {
	if c.server.Done() { // The client's last message is empty.
		return "", nil
	}
	answer, err = c.server.Step(payload)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, errNoUser):
		return "", code.Errorf(code.UserNotFound, "Could not find user \"%s\" for db \"%s\"", c.Name, c.DB)
	case c.User == nil && c.Name != "":
		return "", code.Errorf(code.MechanismUnavailable,
			"Unable to use %s based authentication for user without any %s credentials registered", c.Mechanism,
			c.Mechanism)
	case c.User != nil:
		return "", code.Errorf(code.AuthenticationFailed, "SCRAM authentication failed, storedKey mismatch")
	}
	return "", code.Errorf(code.BadValue, "Incorrect SCRAM client first message: %v", err)
}

// Valid reports whether the client has proven who it is.
func (c *Conversation) Valid() bool { return c.server.Done() && c.server.Valid() }
