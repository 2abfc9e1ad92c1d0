package system

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// subject is the user that a tool is asked about.
func subject(c *tool.Call, accounts *tool.Accounts) (kit.User, error) {
	if len(c.Args) == 0 {
		return c.Env.User, nil
	}
	a, ok := accounts.ByName(c.Args[0])
	if !ok {
		uid, err := strconv.Atoi(c.Args[0])
		if a, ok = accounts.ByUID(uid); err != nil || !ok {
			return kit.User{}, c.Fail(1, "unknown user %s", c.Args[0])
		}
	}
	return kit.User{UID: a.UID, GID: a.GID}, nil
}

// allGroups are a user's groups, the main one first.
func allGroups(u kit.User) []int {
	list := []int{u.GID}
	for _, g := range u.Groups {
		if !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	return list
}

var id = tool.Tool{
	Name: "id", Options: "u,user g,group G,groups n,name r,real", Args: "[-ugGnr] [USER]",
	Help: "Print information about USER or the current user\n" +
		"\n" +
		"\t-u\tUser ID\n" +
		"\t-g\tGroup ID\n" +
		"\t-G\tSupplementary group IDs\n" +
		"\t-n\tPrint names instead of numbers\n" +
		"\t-r\tPrint real ID instead of effective ID",
	Run: func(_ context.Context, c *tool.Call) error {
		accounts := tool.ReadAccounts(c.Env)
		u, err := subject(c, accounts)
		if err != nil {
			return err
		}
		user, group := strconv.Itoa(u.UID), strconv.Itoa(u.GID)
		if c.Opts.Has("n") {
			user, group = accounts.UserName(u.UID), accounts.GroupName(u.GID)
		}
		switch {
		case c.Opts.Has("u"):
			c.Out.Line(user)
		case c.Opts.Has("g"):
			c.Out.Line(group)
		case c.Opts.Has("G"):
			var list []string
			for _, g := range allGroups(u) {
				if c.Opts.Has("n") {
					list = append(list, accounts.GroupName(g))
				} else {
					list = append(list, strconv.Itoa(g))
				}
			}
			c.Out.Line(strings.Join(list, " "))
		default:
			named := func(n int, name string) string {
				if name == strconv.Itoa(n) {
					return name
				}
				return fmt.Sprintf("%d(%s)", n, name)
			}
			var list []string
			for _, g := range allGroups(u) {
				list = append(list, named(g, accounts.GroupName(g)))
			}
			user, group := named(u.UID, accounts.UserName(u.UID)), named(u.GID, accounts.GroupName(u.GID))
			c.Out.Printf("uid=%s gid=%s groups=%s\n", user, group, strings.Join(list, ","))
		}
		return nil
	},
}

var whoami = tool.Tool{
	Name: "whoami", Args: "", Help: "Print the username associated with the current effective user id",
	Run: func(_ context.Context, c *tool.Call) error {
		a, ok := tool.ReadAccounts(c.Env).ByUID(c.Env.User.UID)
		if !ok {
			return c.Fail(1, "unknown uid %d", c.Env.User.UID)
		}
		c.Out.Line(a.Name)
		return nil
	},
}

var groups = tool.Tool{
	Name: "groups", Args: "[USER]", Help: "Print the groups USER is in",
	Run: func(_ context.Context, c *tool.Call) error {
		accounts := tool.ReadAccounts(c.Env)
		u, err := subject(c, accounts)
		if err != nil {
			return err
		}
		var names []string
		for _, g := range allGroups(u) {
			names = append(names, accounts.GroupName(g))
		}
		c.Out.Line(strings.Join(names, " "))
		return nil
	},
}
