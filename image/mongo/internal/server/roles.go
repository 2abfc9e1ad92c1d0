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

// role is a role somebody made.
type role struct {
	name       auth.RoleName
	privileges []auth.Privilege
	roles      []auth.RoleName
}

func parseRoleDoc(d value.Doc) *role {
	r := &role{}
	r.name.Role, _ = value.Str(value.Get(d, "role"))
	r.name.DB, _ = value.Str(value.Get(d, "db"))
	r.privileges, _ = parsePrivileges(value.Get(d, "privileges"))
	r.roles, _ = auth.ParseRoles(value.Get(d, "roles"), r.name.DB)
	return r
}

func parsePrivileges(v value.Value) ([]auth.Privilege, error) {
	var list []auth.Privilege
	for _, item := range value.Items(value.Inner(v)) {
		p, err := auth.ParsePrivilege(item)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func privilegeDocs(list []auth.Privilege) bson.A {
	docs := bson.A{}
	for _, p := range list {
		docs = append(docs, p.Doc())
	}
	return docs
}

func (r *role) doc() value.Doc {
	return value.Make(bson.D{
		{Key: "_id", Value: roleKey(r.name)},
		{Key: "role", Value: r.name.Role},
		{Key: "db", Value: r.name.DB},
		{Key: "privileges", Value: privilegeDocs(r.privileges)},
		{Key: "roles", Value: auth.RoleDocs(r.roles)},
	})
}

func runCreateRole(k *call) (bson.D, error) {
	name, err := k.str("createRole")
	if err != nil {
		return nil, err
	}
	r := &role{name: auth.RoleName{Role: name, DB: k.db}}
	if _, ok := auth.Builtin(r.name); ok {
		return nil, code.Errorf(code.BadValue, "Cannot create roles with the same name as a built-in role")
	}
	if r.privileges, err = parsePrivileges(value.Get(k.body, "privileges")); err != nil {
		return nil, err
	}
	if r.roles, err = auth.ParseRoles(value.Get(k.body, "roles"), k.db); err != nil {
		return nil, err
	}
	return bson.D{}, k.changeAdmin(rolesC, func(tx *engine.Tx, c *engine.Collection) error {
		if byID(c, roleKey(r.name)) != nil {
			return code.Errorf(code.RoleExists, "Role \"%s\" already exists", r.name)
		}
		if err := checkRoles(tx, r.roles); err != nil {
			return err
		}
		return put(tx, c, r.doc())
	})
}

// editRole changes a role there must be.
func (k *call) editRole(edit func(tx *engine.Tx, r *role) error) (bson.D, error) {
	name, err := k.str(k.name)
	if err != nil {
		return nil, err
	}
	rn := auth.RoleName{Role: name, DB: k.db}
	if _, ok := auth.Builtin(rn); ok {
		return nil, code.Errorf(19, "%s is a built-in role and cannot be modified", rn)
	}
	return bson.D{}, k.changeAdmin(rolesC, func(tx *engine.Tx, c *engine.Collection) error {
		d := byID(c, roleKey(rn))
		if d == nil {
			return code.Errorf(code.RoleNotFound, "Role %s not found", rn)
		}
		r := parseRoleDoc(d)
		if err := edit(tx, r); err != nil {
			return err
		}
		return put(tx, c, r.doc())
	})
}

func runUpdateRole(k *call) (bson.D, error) {
	return k.editRole(func(tx *engine.Tx, r *role) error {
		if v := value.Get(k.body, "privileges"); value.Exists(v) {
			list, err := parsePrivileges(v)
			if err != nil {
				return err
			}
			r.privileges = list
		}
		if v := value.Get(k.body, "roles"); value.Exists(v) {
			list, err := auth.ParseRoles(v, k.db)
			if err == nil {
				err = checkRoles(tx, list)
			}
			if err != nil {
				return err
			}
			r.roles = list
		}
		return nil
	})
}

func runGrantToRole(k *call) (bson.D, error) {
	return k.editRole(func(tx *engine.Tx, r *role) error {
		roles, err := k.knownRoles(tx)
		r.roles = union(r.roles, roles)
		return err
	})
}

func runRevokeFromRole(k *call) (bson.D, error) {
	return k.editRole(func(tx *engine.Tx, r *role) error {
		roles, err := k.rolesArg()
		r.roles = difference(r.roles, roles)
		return err
	})
}

func runGrantPrivileges(k *call) (bson.D, error) {
	return k.editRole(func(tx *engine.Tx, r *role) error {
		list, err := parsePrivileges(value.Get(k.body, "privileges"))
		for _, p := range list {
			i := slices.IndexFunc(r.privileges, func(q auth.Privilege) bool { return q.Resource == p.Resource })
			if i < 0 {
				r.privileges = append(r.privileges, p)
				continue
			}
			for _, a := range p.Actions {
				if !slices.Contains(r.privileges[i].Actions, a) {
					r.privileges[i].Actions = append(r.privileges[i].Actions, a)
				}
			}
		}
		return err
	})
}

func runRevokePrivileges(k *call) (bson.D, error) {
	return k.editRole(func(tx *engine.Tx, r *role) error {
		list, err := parsePrivileges(value.Get(k.body, "privileges"))
		for i, q := range r.privileges {
			for _, p := range list {
				if p.Resource == q.Resource {
					r.privileges[i].Actions = slices.DeleteFunc(q.Actions, func(a string) bool {
						return slices.Contains(p.Actions, a)
					})
				}
			}
		}
		r.privileges = slices.DeleteFunc(r.privileges, func(p auth.Privilege) bool { return len(p.Actions) == 0 })
		return err
	})
}

func runDropRole(k *call) (bson.D, error) {
	name, err := k.str("dropRole")
	if err != nil {
		return nil, err
	}
	rn := auth.RoleName{Role: name, DB: k.db}
	if _, ok := auth.Builtin(rn); ok {
		return nil, code.Errorf(19, "%s is a built-in role and cannot be modified", rn)
	}
	return bson.D{}, k.changeAdmin(rolesC, func(tx *engine.Tx, c *engine.Collection) error {
		h, ok := hitByID(c, roleKey(rn))
		if !ok {
			return code.Errorf(code.RoleNotFound, "Role '%s' not found", rn)
		}
		tx.Delete(c, h.ID)
		return forget(tx, rn)
	})
}

// forget takes a role that is no more from all users and roles.
func forget(tx *engine.Tx, gone auth.RoleName) error {
	for _, coll := range []string{usersC, rolesC} {
		c := tx.Collection(adminDB, coll)
		hits, _ := c.Search(&query.Filter{}, 0)
		for _, h := range hits {
			var d value.Doc
			if coll == usersC {
				u := auth.ParseUser(h.Doc)
				u.Roles = difference(u.Roles, []auth.RoleName{gone})
				d = u.Doc()
			} else {
				r := parseRoleDoc(h.Doc)
				r.roles = difference(r.roles, []auth.RoleName{gone})
				d = r.doc()
			}
			if err := tx.Replace(c, h.ID, d); err != nil {
				return err
			}
		}
	}
	return nil
}

func runDropAllRoles(k *call) (bson.D, error) {
	n := 0
	err := k.changeAdmin(rolesC, func(tx *engine.Tx, c *engine.Collection) error {
		n = deleteOf(tx, c, k.db)
		return nil
	})
	return bson.D{{Key: "n", Value: n}}, err
}

func runRolesInfo(k *call) (bson.D, error) {
	which := value.Get(k.body, "rolesInfo")
	list := bson.A{}
	err := k.srv.Engine.View(func(tx *engine.Tx) error {
		names, err := k.rolesAsked(tx, which)
		for _, r := range names {
			if info := k.roleInfo(tx, r); info != nil {
				list = append(list, info)
			}
		}
		return err
	})
	return bson.D{{Key: "roles", Value: list}}, err
}

// rolesAsked returns the roles that a command means: 1 for those of the database, a name, or a list.
func (k *call) rolesAsked(tx *engine.Tx, which value.Value) ([]auth.RoleName, error) {
	if n, ok := value.Int(which); !ok || n != 1 {
		if !value.IsArray(which) {
			which = value.Array(which)
		}
		return auth.ParseRoles(which, k.db)
	}
	var names []auth.RoleName
	if c := tx.Collection(adminDB, rolesC); c != nil {
		c.Docs(func(d value.Doc) bool {
			if r := parseRoleDoc(d); r.name.DB == k.db {
				names = append(names, r.name)
			}
			return true
		})
	}
	if k.flag("showBuiltinRoles") {
		names = append(names, auth.Builtins(k.db)...)
	}
	return names, nil
}

func (k *call) roleInfo(tx *engine.Tx, name auth.RoleName) bson.D {
	privileges, builtin := auth.Builtin(name)
	r := &role{name: name, privileges: privileges}
	if !builtin {
		d := byID(tx.Collection(adminDB, rolesC), roleKey(name))
		if d == nil {
			return nil
		}
		r = parseRoleDoc(d)
	}
	all := inherited(tx, r.roles)
	info := bson.D{
		{Key: "role", Value: name.Role},
		{Key: "db", Value: name.DB},
		{Key: "isBuiltin", Value: builtin},
		{Key: "roles", Value: auth.RoleDocs(r.roles)},
		{Key: "inheritedRoles", Value: auth.RoleDocs(all)},
	}
	if k.flag("showPrivileges") {
		info = append(info, bson.E{Key: "privileges", Value: privilegeDocs(r.privileges)},
			bson.E{
				Key:   "inheritedPrivileges",
				Value: privilegeDocs(slices.Concat(r.privileges, privilegesOf(tx, all))),
			})
	}
	return info
}
