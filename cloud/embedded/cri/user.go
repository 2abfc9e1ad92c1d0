package cri

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

// account is a line of the image's /etc/passwd.
type account struct {
	name, home string
	uid, gid   int
}

// setUser finds out which user the programs run as.
func (c *Container) setUser() error {
	sc := c.config.GetLinux().GetSecurityContext()
	name := c.image.image.User
	switch {
	case sc.GetRunAsUser() != nil:
		name = strconv.FormatInt(sc.RunAsUser.Value, 10)
	case sc.GetRunAsUsername() != "":
		name = sc.RunAsUsername
	}
	user, group, _ := strings.Cut(name, ":")
	a, err := c.account(user)
	if err != nil {
		return err
	}
	c.user.UID, c.user.GID, c.home = a.uid, a.gid, a.home
	if gid, err := strconv.Atoi(group); err == nil {
		c.user.GID = gid
	}
	if sc.GetRunAsGroup() != nil {
		c.user.GID = int(sc.RunAsGroup.Value)
	}
	if sc.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Merge {
		c.user.Groups = c.groupsOf(a.name)
	}
	for _, g := range sc.GetSupplementalGroups() {
		if !slices.Contains(c.user.Groups, int(g)) {
			c.user.Groups = append(c.user.Groups, int(g))
		}
	}
	return nil
}

// account looks a user up in the image, by name or ID; "" is root. Another ID need not be known there.
func (c *Container) account(user string) (account, error) {
	if user == "" {
		user = "0"
	}
	uid, err := strconv.Atoi(user)
	for f := range c.fields("/etc/passwd") {
		if len(f) >= 4 && (f[0] == user || err == nil && f[2] == user) {
			a := account{name: f[0], home: "/"}
			a.uid, _ = strconv.Atoi(f[2])
			a.gid, _ = strconv.Atoi(f[3])
			if len(f) >= 6 && f[5] != "" {
				a.home = f[5]
			}
			return a, nil
		}
	}
	if err != nil {
		return account{}, fmt.Errorf("no users found: unable to find user %s", user)
	}
	return account{uid: uid, home: "/"}, nil
}

// groupsOf returns the groups that the image makes a user a member of.
func (c *Container) groupsOf(user string) (list []int) {
	for f := range c.fields("/etc/group") {
		if len(f) < 4 || user == "" || !slices.Contains(strings.Split(f[3], ","), user) {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil && !slices.Contains(list, gid) {
			list = append(list, gid)
		}
	}
	return list
}

// fields yields the lines of a file of the image, cut at colons.
func (c *Container) fields(name string) func(yield func([]string) bool) {
	text, _ := (&kit.Env{FS: c.files.As(kit.User{}), Dir: "/"}).ReadFile(name) // None says nothing.
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.Split(strings.TrimSpace(line), ":")) {
				return
			}
		}
	}
}
