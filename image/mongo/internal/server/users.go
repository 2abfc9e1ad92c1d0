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

// changeAdmin runs a transaction on one of the collections of users and roles.
func (k *call) changeAdmin(coll string, f func(tx *engine.Tx, c *engine.Collection) error) error {
	defer k.srv.access.invalidate()
	return k.srv.Engine.Update(func(tx *engine.Tx) error {
		c := tx.Collection(adminDB, coll)
		if c == nil {
			var err error
			if c, err = tx.Create(adminDB, coll, nil); err != nil {
				return err
			}
			field := map[string]string{usersC: "user", rolesC: "role"}[coll]
			if err := tx.CreateIndex(c, value.Make(bson.D{
				{Key: "v", Value: 2},
				{Key: "unique", Value: true},
				{Key: "key", Value: bson.D{{Key: field, Value: 1}, {Key: "db", Value: 1}}},
				{Key: "name", Value: field + "_1_db_1"},
			})); err != nil {
				return err
			}
			k.logCreated(c)
		}
		return f(tx, c)
	})
}

// put stores a document of users or roles, in the place of the one with its _id if there is one.
func put(tx *engine.Tx, c *engine.Collection, d value.Doc) error {
	id, _ := value.Str(value.Get(d, "_id"))
	if h, ok := hitByID(c, id); ok {
		return tx.Replace(c, h.ID, d)
	}
	return tx.Insert(c, d)
}

func hitByID(c *engine.Collection, id string) (engine.Hit, bool) {
	f, err := query.Parse(value.Make(bson.D{{Key: "_id", Value: id}}))
	if err != nil {
		return engine.Hit{}, false
	}
	hits, _ := c.Search(f, 1)
	if len(hits) == 0 {
		return engine.Hit{}, false
	}
	return hits[0], true
}

// checkRoles refuses roles that do not exist.
func checkRoles(tx *engine.Tx, roles []auth.RoleName) error {
	for _, r := range roles {
		if _, ok := auth.Builtin(r); ok {
			continue
		}
		if byID(tx.Collection(adminDB, rolesC), roleKey(r)) == nil {
			return code.Errorf(code.RoleNotFound, "No role named %s", r)
		}
	}
	return nil
}

// granting are the privileges it takes to give roles away.
func granting(k *call, action string) ([]need, error) {
	roles, err := auth.ParseRoles(value.Get(k.body, "roles"), k.db)
	var list []need
	for _, r := range roles {
		list = append(list, need{auth.Database(r.DB), action})
	}
	return list, err
}

// mechanismsArg reads the mechanisms a password is for.
func (k *call) mechanismsArg() ([]string, error) {
	v := value.Get(k.body, "mechanisms")
	if value.Missing(v) {
		return auth.Mechanisms, nil
	}
	var list []string
	for _, item := range value.Items(value.Inner(v)) {
		s, _ := value.Str(item)
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, code.Errorf(code.BadValue, "mechanisms field must not be empty")
	}
	return list, nil
}

// setPassword gives a user the password of the command.
func (k *call) setPassword(u *auth.User) error {
	pwd, err := k.str("pwd")
	if err != nil {
		return err
	}
	if pwd == "" {
		return code.Errorf(50687, "Password cannot be empty")
	}
	names, err := k.mechanismsArg()
	if err != nil {
		return err
	}
	return u.SetPassword(pwd, names)
}

func runCreateUser(k *call) (bson.D, error) {
	name, err := k.str("createUser")
	if err != nil {
		return nil, err
	}
	u := auth.NewUser(name, k.db)
	u.CustomData = value.Get(k.body, "customData")
	if value.Missing(value.Get(k.body, "roles")) {
		return nil, code.Errorf(code.BadValue, "\"createUser\" command requires a \"roles\" array")
	}
	if u.Roles, err = auth.ParseRoles(value.Get(k.body, "roles"), k.db); err != nil {
		return nil, err
	}
	if value.Missing(value.Get(k.body, "pwd")) && k.db != "$external" {
		return nil, code.Errorf(code.BadValue,
			"Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	}
	if k.db == "local" {
		return nil, code.Errorf(code.BadValue, "Cannot create users in the local database")
	}
	if err := k.setPassword(u); err != nil {
		return nil, err
	}
	return bson.D{}, k.changeAdmin(usersC, func(tx *engine.Tx, c *engine.Collection) error {
		if byID(c, u.Key()) != nil {
			return code.Errorf(code.UserExists, "User \"%s\" already exists", u)
		}
		if err := checkRoles(tx, u.Roles); err != nil {
			return err
		}
		return put(tx, c, u.Doc())
	})
}

// editUser changes a user there must be.
func (k *call) editUser(edit func(tx *engine.Tx, u *auth.User) error) (bson.D, error) {
	name, err := k.str(k.name)
	if err != nil {
		return nil, err
	}
	return bson.D{}, k.changeAdmin(usersC, func(tx *engine.Tx, c *engine.Collection) error {
		d := byID(c, auth.UserKey(name, k.db))
		if d == nil {
			if k.name == "updateUser" {
				return code.Errorf(code.UserNotFound, "User %s@%s not found", name, k.db)
			}
			return code.Errorf(code.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name, k.db)
		}
		u := auth.ParseUser(d)
		if err := edit(tx, u); err != nil {
			return err
		}
		return put(tx, c, u.Doc())
	})
}

func runUpdateUser(k *call) (bson.D, error) {
	has := func(name string) bool { return value.Exists(value.Get(k.body, name)) }
	if !has("pwd") && !has("roles") && !has("customData") && !has("mechanisms") {
		return nil, code.Errorf(code.BadValue, "Must specify at least one field to update in updateUser")
	}
	return k.editUser(func(tx *engine.Tx, u *auth.User) error {
		if has("roles") {
			roles, err := auth.ParseRoles(value.Get(k.body, "roles"), k.db)
			if err == nil {
				err = checkRoles(tx, roles)
			}
			if err != nil {
				return err
			}
			u.Roles = roles
		}
		if has("customData") {
			u.CustomData = value.Get(k.body, "customData")
		}
		if has("pwd") {
			return k.setPassword(u)
		}
		return nil
	})
}

func runGrantToUser(k *call) (bson.D, error) {
	return k.editUser(func(tx *engine.Tx, u *auth.User) error {
		roles, err := k.knownRoles(tx)
		u.Roles = union(u.Roles, roles)
		return err
	})
}

func runRevokeFromUser(k *call) (bson.D, error) {
	return k.editUser(func(tx *engine.Tx, u *auth.User) error {
		roles, err := k.knownRoles(tx)
		u.Roles = difference(u.Roles, roles)
		return err
	})
}

// rolesArg reads the roles of the command, of which there must be some.
func (k *call) rolesArg() ([]auth.RoleName, error) {
	roles, err := auth.ParseRoles(value.Get(k.body, "roles"), k.db)
	if err == nil && len(roles) == 0 {
		err = code.Errorf(code.BadValue, "%s command requires a non-empty \"roles\" array", k.name)
	}
	return roles, err
}

// knownRoles reads the roles of the command, which must be there.
func (k *call) knownRoles(tx *engine.Tx) ([]auth.RoleName, error) {
	roles, err := k.rolesArg()
	if err == nil {
		err = checkRoles(tx, roles)
	}
	return roles, err
}

func union(a, b []auth.RoleName) []auth.RoleName {
	for _, r := range b {
		if !slices.Contains(a, r) {
			a = append(a, r)
		}
	}
	return a
}

func difference(a, b []auth.RoleName) []auth.RoleName {
	return slices.DeleteFunc(a, func(r auth.RoleName) bool { return slices.Contains(b, r) })
}

func runDropUser(k *call) (bson.D, error) {
	name, err := k.str("dropUser")
	if err != nil {
		return nil, err
	}
	return bson.D{}, k.changeAdmin(usersC, func(tx *engine.Tx, c *engine.Collection) error {
		h, ok := hitByID(c, auth.UserKey(name, k.db))
		if !ok {
			return code.Errorf(code.UserNotFound, "User '%s@%s' not found", name, k.db)
		}
		tx.Delete(c, h.ID)
		return nil
	})
}

func runDropAllUsers(k *call) (bson.D, error) {
	n := 0
	err := k.changeAdmin(usersC, func(tx *engine.Tx, c *engine.Collection) error {
		n = deleteOf(tx, c, k.db)
		return nil
	})
	return bson.D{{Key: "n", Value: n}}, err
}

// deleteOf deletes the users or roles of a database.
func deleteOf(tx *engine.Tx, c *engine.Collection, db string) int {
	f, err := query.Parse(value.Make(bson.D{{Key: "db", Value: db}}))
	if err != nil {
		return 0
	}
	hits, _ := c.Search(f, 0)
	for _, h := range hits {
		tx.Delete(c, h.ID)
	}
	return len(hits)
}
