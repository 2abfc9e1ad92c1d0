package tool

import (
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Account is a line of /etc/passwd.
type Account struct {
	Name        string
	UID, GID    int
	Home, Shell string
}

// Accounts are the users and groups of a container.
type Accounts struct {
	users  []Account
	groups []Account // of which only Name and GID are set
}

// ReadAccounts reads /etc/passwd and /etc/group. A container without them knows root at least.
func ReadAccounts(env *kit.Env) *Accounts {
	a := &Accounts{}
	for _, f := range colonLines(env, "/etc/passwd") {
		if len(f) < 7 {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil {
			a.users = append(a.users, Account{f[0], uid, gid, f[5], f[6]})
		}
	}
	for _, f := range colonLines(env, "/etc/group") {
		if len(f) < 3 {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil {
			a.groups = append(a.groups, Account{Name: f[0], GID: gid})
		}
	}
	if _, ok := a.ByUID(0); !ok {
		a.users = append(a.users, Account{Name: "root", Home: "/root", Shell: "/bin/sh"})
	}
	if a.GroupName(0) == "0" {
		a.groups = append(a.groups, Account{Name: "root"})
	}
	return a
}

func colonLines(env *kit.Env, name string) (lines [][]string) {
	data, err := env.ReadFile(name)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), ":"))
	}
	return lines
}

// ByUID finds a user by number.
func (a *Accounts) ByUID(uid int) (Account, bool) {
	for _, u := range a.users {
		if u.UID == uid {
			return u, true
		}
	}
	return Account{}, false
}

// ByName finds a user by name.
func (a *Accounts) ByName(name string) (Account, bool) {
	for _, u := range a.users {
		if u.Name == name {
			return u, true
		}
	}
	return Account{}, false
}

// UserName returns the name of a user, or the number if there is none.
func (a *Accounts) UserName(uid int) string {
	if u, ok := a.ByUID(uid); ok {
		return u.Name
	}
	return strconv.Itoa(uid)
}

// GroupName returns the name of a group, or the number if there is none.
func (a *Accounts) GroupName(gid int) string {
	for _, g := range a.groups {
		if g.GID == gid {
			return g.Name
		}
	}
	return strconv.Itoa(gid)
}

// GroupByName finds a group by name or number.
func (a *Accounts) GroupByName(name string) (gid int, ok bool) {
	for _, g := range a.groups {
		if g.Name == name {
			return g.GID, true
		}
	}
	gid, err := strconv.Atoi(name)
	return gid, err == nil
}

// UserByName finds a user by name or number.
func (a *Accounts) UserByName(name string) (uid int, ok bool) {
	if u, ok := a.ByName(name); ok {
		return u.UID, true
	}
	uid, err := strconv.Atoi(name)
	return uid, err == nil
}
