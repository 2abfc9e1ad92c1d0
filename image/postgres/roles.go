package postgres

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"

	"github.com/xdg-go/scram"
)

// role is a user.
type role struct {
	name   string
	super  bool
	login  bool
	stored scram.StoredCredentials
	noPass bool
	rights map[right]bool
}

// right is one that a role has on a table, on all tables of a schema ("*"), or on a schema itself ("").
type right struct{ what, schema, table string }

// roles are the users of a server.
type roles struct {
	mu  sync.Mutex
	all map[string]*role
}

// iterations of the hash of a password, as PostgreSQL has them.
const iterations = 4096

func credentials(user, password string) (scram.StoredCredentials, error) {
	client, err := scram.SHA256.NewClientUnprepped(user, password, "")
	if err != nil {
		return scram.StoredCredentials{}, err
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	return client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
}

const maxRoles = 100

// set makes or changes a role. A nil password is none.
func (r *roles) set(name string, create, super, login bool, password *string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.all[name]
	switch {
	case create && old != nil:
		return failf(codeDuplicateObject, "role %q already exists", name)
	case !create && old == nil:
		return failf(codeNoObject, "role %q does not exist", name)
	case create && len(r.all) >= maxRoles:
		return failf(codeTooLarge, "there are %d roles already", maxRoles)
	case old == nil:
		old = &role{name: name, super: super, login: login, noPass: true, rights: map[right]bool{}}
		r.all[name] = old
	}
	if password == nil {
		return nil
	}
	stored, err := credentials(name, *password)
	if err != nil {
		return failf(codeInternal, "the password cannot be kept: %v", err)
	}
	old.stored, old.noPass = stored, false
	return nil
}

func (r *roles) drop(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[name] == nil {
		return failf(codeNoObject, "role %q does not exist", name)
	}
	delete(r.all, name)
	return nil
}

func (r *roles) get(name string) (role, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.all[name]; found != nil {
		return *found, true
	}
	return role{}, false
}

func (r *roles) list() (names []role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		names = append(names, *one)
	}
	slices.SortFunc(names, func(a, b role) int { return strings.Compare(a.name, b.name) })
	return names
}

// may tells whether a role has a right on a table.
func (r *roles) may(name, what, schema, table string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.all[name]
	if found == nil {
		return failf(codeDenied, "role %q does not exist", name)
	}
	if schema == "main" {
		schema = "public"
	}
	has := func(what, table string) bool {
		return found.rights[right{what, schema, table}] || found.rights[right{"ALL", schema, table}]
	}
	switch {
	case found.super:
		return nil
	case schema != "public" && !has("USAGE", ""):
		return failf(codeDenied, "permission denied for schema %s", schema)
	case what == "OWNER":
		if has("CREATE", "") {
			return nil
		}
		return failf(codeDenied, "permission denied for schema %s", schema)
	case has(what, table) || has(what, "*"):
		return nil
	}
	return failf(codeDenied, "permission denied for table %s", table)
}

const maxRights = 1000

// grant gives rights to a role, or takes them.
func (r *roles) grant(to string, rights []right, give bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.all[to]
	if found == nil {
		return failf(codeNoObject, "role %q does not exist", to)
	}
	for _, one := range rights {
		if !give {
			for have := range found.rights {
				if have.schema == one.schema && (have.table == one.table || one.table == "*" && have.table != "") &&
					(one.what == "ALL" || have.what == one.what) {
					delete(found.rights, have)
				}
			}
			continue
		}
		if len(found.rights) >= maxRights {
			return failf(codeTooLarge, "role %q has %d rights already", to, maxRights)
		}
		found.rights[one] = true
	}
	return nil
}
