// Package auth decides who may do what: users and their credentials, roles and their privileges.
package auth

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Resource is what a privilege applies to, or what a command needs a privilege on.
type Resource struct {
	Cluster bool
	Any     bool // everything; in privileges only
	// DB and Coll name a database or a collection. In a privilege an empty DB is every database, and
	// an empty Coll every collection that is not the system's.
	DB, Coll string
}

// Cluster is the resource of the whole server.
func Cluster() Resource { return Resource{Cluster: true} }

// Database is the resource of a whole database.
func Database(db string) Resource { return Resource{DB: db} }

// Collection is the resource of one collection.
func Collection(db, coll string) Resource { return Resource{DB: db, Coll: coll} }

// covers reports whether a privilege for r holds for what is needed.
func (r Resource) covers(need Resource) bool {
	switch {
	case r.Any:
		return true
	case r.Cluster || need.Cluster:
		return r.Cluster && need.Cluster
	case r.DB != "" && r.DB != need.DB:
		return false
	case r.Coll == "":
		return !strings.HasPrefix(need.Coll, "system.")
	}
	return r.Coll == need.Coll
}

// Doc is the form in which commands show a resource.
func (r Resource) Doc() bson.D {
	switch {
	case r.Any:
		return bson.D{{Key: "anyResource", Value: true}}
	case r.Cluster:
		return bson.D{{Key: "cluster", Value: true}}
	}
	return bson.D{{Key: "db", Value: r.DB}, {Key: "collection", Value: r.Coll}}
}

// Privilege is the right to do some actions on a resource.
type Privilege struct {
	Resource Resource
	Actions  []string
}

// Doc is the form in which commands show a privilege.
func (p Privilege) Doc() bson.D {
	return bson.D{{Key: "resource", Value: p.Resource.Doc()}, {Key: "actions", Value: p.Actions}}
}

// Allows reports whether one of the privileges lets an action be done.
func Allows(list []Privilege, need Resource, action string) bool {
	return slices.ContainsFunc(list, func(p Privilege) bool {
		return p.Resource.covers(need) &&
			(slices.Contains(p.Actions, action) || slices.Contains(p.Actions, "anyAction"))
	})
}

// ParsePrivilege reads a privilege as createRole takes it.
func ParsePrivilege(v value.Value) (Privilege, error) {
	d := value.Inner(v)
	res := value.Inner(value.Get(d, "resource"))
	if res == nil {
		return Privilege{}, code.Errorf(code.FailedToParse, "missing resource field in privilege: %s",
			value.ValueText(v))
	}
	p := Privilege{Resource: Resource{
		Cluster: value.Truthy(value.Get(res, "cluster")),
		Any:     value.Truthy(value.Get(res, "anyResource")),
	}}
	p.Resource.DB, _ = value.Str(value.Get(res, "db"))
	p.Resource.Coll, _ = value.Str(value.Get(res, "collection"))
	for _, a := range value.Items(value.Inner(value.Get(d, "actions"))) {
		s, ok := value.Str(a)
		if !ok {
			return p, code.Errorf(code.FailedToParse, "expected the actions of a privilege to be strings")
		}
		p.Actions = append(p.Actions, s)
	}
	if len(p.Actions) == 0 {
		return p, code.Errorf(code.FailedToParse, "missing actions field in privilege: %s", value.ValueText(v))
	}
	return p, nil
}

// RoleName names a role of a database.
type RoleName struct{ Role, DB string }

func (r RoleName) String() string { return r.Role + "@" + r.DB }

// Doc is the form in which commands show a role's name.
func (r RoleName) Doc() bson.D {
	return bson.D{{Key: "role", Value: r.Role}, {Key: "db", Value: r.DB}}
}

// RoleDocs is a list of names in the form commands show.
func RoleDocs(roles []RoleName) bson.A {
	list := bson.A{}
	for _, r := range roles {
		list = append(list, r.Doc())
	}
	return list
}

// ParseRole reads the name of a role: a document, or a string for one of the given database.
func ParseRole(v value.Value, db string) (RoleName, error) {
	if s, ok := value.Str(v); ok {
		return RoleName{s, db}, nil
	}
	role, ok1 := value.Str(value.Get(value.Inner(v), "role"))
	of, ok2 := value.Str(value.Get(value.Inner(v), "db"))
	if !ok1 || !ok2 {
		return RoleName{}, code.Errorf(code.BadValue,
			"Role names must be either strings or objects with fields 'role' and 'db'")
	}
	return RoleName{role, of}, nil
}

// ParseRoles reads an array of names.
func ParseRoles(v value.Value, db string) ([]RoleName, error) {
	list := []RoleName{}
	for _, item := range value.Items(value.Inner(v)) {
		r, err := ParseRole(item, db)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list, nil
}
