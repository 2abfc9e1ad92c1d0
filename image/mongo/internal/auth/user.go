package auth

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// User is an account of a database.
type User struct {
	Name, DB   string
	ID         []byte // changes when a user is dropped and made again
	Roles      []RoleName
	CustomData value.Value

	credentials map[string]credential // by mechanism
}

func (u *User) String() string { return u.Name + "@" + u.DB }

// Key is the _id of the user's document.
func (u *User) Key() string { return UserKey(u.Name, u.DB) }

// UserKey is the _id of a user's document.
func UserKey(name, db string) string { return db + "." + name }

// NewUser returns a user without a password.
func NewUser(name, db string) *User {
	return &User{Name: name, DB: db, ID: value.NewUUID().Data}
}

// ParseUser reads a document of admin.system.users.
func ParseUser(d value.Doc) *User {
	u := &User{CustomData: value.Get(d, "customData"), credentials: map[string]credential{}}
	u.Name, _ = value.Str(value.Get(d, "user"))
	u.DB, _ = value.Str(value.Get(d, "db"))
	_, u.ID, _ = value.Get(d, "userId").BinaryOK()
	u.Roles, _ = ParseRoles(value.Get(d, "roles"), u.DB)
	for mechanism, v := range value.Fields(value.Inner(value.Get(d, "credentials"))) {
		if c, ok := parseCredential(value.Inner(v)); ok {
			u.credentials[mechanism] = c
		}
	}
	return u
}

// Doc is the document of admin.system.users.
func (u *User) Doc() value.Doc {
	credentials := bson.D{}
	for _, m := range Mechanisms {
		if c, ok := u.credentials[m]; ok {
			credentials = append(credentials, bson.E{Key: m, Value: c.doc()})
		}
	}
	return value.Make(bson.D{
		{Key: "_id", Value: u.Key()},
		{Key: "userId", Value: bson.Binary{Subtype: 4, Data: u.ID}},
		{Key: "user", Value: u.Name},
		{Key: "db", Value: u.DB},
		{Key: "credentials", Value: credentials},
		{Key: "customData", Value: u.CustomData},
		{Key: "roles", Value: RoleDocs(u.Roles)},
	})
}

// Mechanisms returns the mechanisms that the user can authenticate with.
func (u *User) Mechanisms() []string {
	list := []string{}
	for _, m := range Mechanisms {
		if _, ok := u.credentials[m]; ok {
			list = append(list, m)
		}
	}
	return list
}
