package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// isOwn reports whether usersInfo asks for one of the connection's own users alone.
func (k *call) isOwn(v value.Value) bool {
	r, err := parseUserName(v, k.db)
	return err == nil && slices.ContainsFunc(k.conn.users, func(u identity) bool {
		return u.name == r.name && u.db == r.db
	})
}

// parseUserName reads a user's name: a string for one of the database, or a document.
func parseUserName(v value.Value, db string) (identity, error) {
	if s, ok := value.Str(v); ok {
		return identity{name: s, db: db}, nil
	}
	name, ok1 := value.Str(value.Get(value.Inner(v), "user"))
	of, ok2 := value.Str(value.Get(value.Inner(v), "db"))
	if !ok1 || !ok2 {
		return identity{}, code.Errorf(code.BadValue,
			"User names must be either strings or objects with fields 'user' and 'db'")
	}
	return identity{name: name, db: of}, nil
}

func runUsersInfo(k *call) (bson.D, error) {
	which := value.Get(k.body, "usersInfo")
	cond, err := usersFilter(which, k.db)
	if err != nil {
		return nil, err
	}
	f, err := query.Parse(value.Make(cond))
	if err != nil {
		return nil, err
	}
	list := bson.A{}
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		hits, _ := tx.Collection(adminDB, usersC).Search(f, 0)
		query.SortBy(query.Order{{Path: "db"}, {Path: "user"}}, hits, hitDoc)
		for _, h := range hits {
			list = append(list, k.userInfo(tx, h.Doc))
		}
		return nil
	})
	return bson.D{{Key: "users", Value: list}}, err
}

// usersFilter finds the users that a command means: 1 for those of the database, a name, or a list.
func usersFilter(which value.Value, db string) (bson.D, error) {
	if n, ok := value.Int(which); ok && n == 1 {
		return bson.D{{Key: "db", Value: db}}, nil
	}
	if value.IsDoc(which) && value.Truthy(value.Get(which.Data, "forAllDBs")) {
		return bson.D{}, nil
	}
	list := []value.Value{which}
	if value.IsArray(which) {
		list = value.List(which.Data)
	}
	ids := bson.A{}
	for _, v := range list {
		u, err := parseUserName(v, db)
		if err != nil {
			return nil, err
		}
		ids = append(ids, auth.UserKey(u.name, u.db))
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, nil
}

// userInfo is a user as usersInfo shows it.
func (k *call) userInfo(tx *engine.Tx, d value.Doc) bson.D {
	u := auth.ParseUser(d)
	info := bson.D{
		{Key: "_id", Value: u.Key()},
		{Key: "userId", Value: bson.Binary{Subtype: 4, Data: u.ID}},
		{Key: "user", Value: u.Name},
		{Key: "db", Value: u.DB},
		{Key: "customData", Value: u.CustomData},
	}
	if k.flag("showCredentials") {
		info = append(info, bson.E{Key: "credentials", Value: value.Get(d, "credentials")})
	}
	info = append(info, bson.E{Key: "roles", Value: auth.RoleDocs(u.Roles)},
		bson.E{Key: "mechanisms", Value: u.Mechanisms()})
	if k.flag("showPrivileges") {
		all := inherited(tx, u.Roles)
		list := bson.A{}
		for _, p := range privilegesOf(tx, all) {
			list = append(list, p.Doc())
		}
		info = append(info, bson.E{Key: "inheritedRoles", Value: auth.RoleDocs(all)},
			bson.E{Key: "inheritedPrivileges", Value: list})
	}
	return info
}
