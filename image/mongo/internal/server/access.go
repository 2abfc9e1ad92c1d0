package server

import (
	"bytes"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Where users and roles are kept.
const (
	adminDB = "admin"
	usersC  = "system.users"
	rolesC  = "system.roles"
)

// identity is a user a connection has proven to be.
type identity struct {
	name, db string
	id       []byte
}

// access is what a user may do.
type access struct {
	user       *auth.User
	privileges []auth.Privilege
}

// accessCache keeps what users may do until users or roles change.
type accessCache struct {
	load func(name, db string) *access

	mu      sync.Mutex
	entries map[string]*access // nil for those there are not
	version int
}

func (a *accessCache) get(name, db string) *access {
	key := auth.UserKey(name, db)
	a.mu.Lock()
	got, ok := a.entries[key]
	version := a.version
	a.mu.Unlock()
	if ok {
		return got
	}
	got = a.load(name, db)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.version == version {
		if a.entries == nil {
			a.entries = map[string]*access{}
		}
		a.entries[key] = got
	}
	return got
}

func (a *accessCache) invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = nil
	a.version++
}

func (s *Server) loadAccess(name, db string) *access {
	var got *access
	s.Engine.View(func(tx *engine.Tx) error {
		d := byID(tx.Collection(adminDB, usersC), auth.UserKey(name, db))
		if d == nil {
			return nil
		}
		u := auth.ParseUser(d)
		roles := inherited(tx, u.Roles)
		got = &access{user: u, privileges: privilegesOf(tx, roles)}
		return nil
	})
	return got
}

// byID finds a document of a collection, which may be nil, by a string.
func byID(c *engine.Collection, id string) value.Doc {
	f, err := query.Parse(value.Make(bson.D{{Key: "_id", Value: id}}))
	if err != nil {
		return nil
	}
	hits, _ := c.Search(f, 1)
	if len(hits) == 0 {
		return nil
	}
	return hits[0].Doc
}

// inherited returns roles with those they inherit.
func inherited(tx *engine.Tx, roles []auth.RoleName) []auth.RoleName {
	all := slices.Clone(roles)
	for i := 0; i < len(all); i++ {
		d := byID(tx.Collection(adminDB, rolesC), roleKey(all[i]))
		more, _ := auth.ParseRoles(value.Get(d, "roles"), all[i].DB)
		for _, r := range more {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func roleKey(r auth.RoleName) string { return r.DB + "." + r.Role }

// privilegesOf returns the privileges of roles, without those they inherit.
func privilegesOf(tx *engine.Tx, roles []auth.RoleName) []auth.Privilege {
	var list []auth.Privilege
	for _, r := range roles {
		if p, ok := auth.Builtin(r); ok {
			list = append(list, p...)
			continue
		}
		d := byID(tx.Collection(adminDB, rolesC), roleKey(r))
		for _, v := range value.Items(value.Inner(value.Get(d, "privileges"))) {
			if p, err := auth.ParsePrivilege(v); err == nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// hasUsers reports whether there is any user, which ends the localhost exception.
func (s *Server) hasUsers() bool {
	n := 0
	s.Engine.View(func(tx *engine.Tx) error {
		if c := tx.Collection(adminDB, usersC); c != nil {
			n = c.Len()
		}
		return nil
	})
	return n > 0
}

// privileges returns what the connection's users may do. Users who are no more are logged out.
func (c *conn) privileges() []auth.Privilege {
	var list []auth.Privilege
	c.users = slices.DeleteFunc(c.users, func(u identity) bool {
		a := c.srv.access.get(u.name, u.db)
		if a == nil || !bytes.Equal(a.user.ID, u.id) {
			c.srv.Log.Info(mlog.Access, 20245, c.name(), "Removed deleted user from session cache of user information",
				bson.D{
					{Key: "user", Value: bson.D{{Key: "user", Value: u.name}, {Key: "db", Value: u.db}}},
				})
			return true
		}
		list = append(list, a.privileges...)
		return false
	})
	if c.bypass {
		if c.srv.hasUsers() {
			c.bypass = false
			return list
		}
		list = append(list, auth.Privilege{
			Resource: auth.Database(adminDB),
			Actions:  []string{"createUser", "createRole", "grantRole"},
		})
	}
	return list
}
