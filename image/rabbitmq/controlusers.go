package rabbitmq

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func (b *broker) listUsers([]string) (answer, error) {
	a := answer{Title: "Listing users ...", Head: []string{"user", "tags"}}
	for _, name := range named(b.users) {
		a.Rows = append(a.Rows, []string{name, "[" + strings.Join(b.users[name].tags, ", ") + "]"})
	}
	return a, nil
}

// known finds a user.
func (b *broker) known(name string) (*user, error) {
	if u := b.users[name]; u != nil {
		return u, nil
	}
	return nil, saidf("User \"%s\" does not exist", printable(name))
}

func (b *broker) addUser(args []string) (answer, error) {
	name, password := args[0], args[1]
	switch {
	case b.users[name] != nil:
		return answer{}, saidf("User \"%s\" already exists", name)
	case !namePattern.MatchString(name) || password == "":
		return answer{}, fmt.Errorf("want a name of at most 200 characters that can be printed, and a password")
	case len(b.users) >= maxUsers:
		return answer{}, fmt.Errorf("there are %d users already", maxUsers)
	}
	u := &user{name: name}
	u.setPassword(password)
	b.users[name] = u
	b.save(true)
	return b.said("Adding user \"%s\" ...\nDone. Don't forget to grant the user permissions to some virtual hosts! "+
		"See 'rabbitmqctl help set_permissions' to learn more.", name), nil
}

func (b *broker) deleteUser(args []string) (answer, error) {
	if _, err := b.known(args[0]); err != nil {
		return answer{}, err
	}
	delete(b.users, args[0])
	b.save(true)
	return b.said("Deleting user \"%s\" ...", args[0]), nil
}

func (b *broker) changePassword(args []string) (answer, error) {
	u, err := b.known(args[0])
	if err != nil {
		return answer{}, err
	}
	u.setPassword(args[1])
	b.save(true)
	return b.said("Changing password for user \"%s\" ...", u.name), nil
}

func (b *broker) authenticateUser(args []string) (answer, error) {
	u := b.users[args[0]]
	if u == nil || !slices.Equal(u.hash, hashed(u.salt, args[1])) {
		return answer{}, fmt.Errorf("failed to authenticate user \"%s\": invalid credentials", printable(args[0]))
	}
	return b.said("Authenticating user \"%s\" ...\nSuccess", u.name), nil
}

func (b *broker) setUserTags(args []string) (answer, error) {
	u, err := b.known(args[0])
	if err != nil {
		return answer{}, err
	}
	if len(args) > 10 {
		return answer{}, fmt.Errorf("a user has at most 9 tags")
	}
	u.tags = slices.Clone(args[1:])
	b.save(true)
	return b.said("Setting tags for user \"%s\" to [%s] ...", u.name, strings.Join(u.tags, ", ")), nil
}

func (b *broker) listPermissions([]string) (answer, error) {
	a := answer{
		Title: fmt.Sprintf("Listing permissions for vhost \"%s\" ...", b.settings.vhost),
		Head:  []string{"user", "configure", "write", "read"},
	}
	for _, name := range named(b.users) {
		if u := b.users[name]; u.may[0] != nil {
			a.Rows = append(a.Rows, []string{name, u.texts[0], u.texts[1], u.texts[2]})
		}
	}
	return a, nil
}

func (b *broker) setPermissions(args []string) (answer, error) {
	u, err := b.known(args[0])
	if err != nil {
		return answer{}, err
	}
	if err := u.permit([3]string{args[1], args[2], args[3]}); err != nil {
		return answer{}, err
	}
	b.save(true)
	return b.said("Setting permissions for user \"%s\" in vhost \"%s\" ...", u.name, b.settings.vhost), nil
}

func (b *broker) clearPermissions(args []string) (answer, error) {
	u, err := b.known(args[0])
	if err != nil {
		return answer{}, err
	}
	u.may, u.texts = [3]*regexp.Regexp{}, [3]string{}
	b.save(true)
	return b.said("Clearing permissions for user \"%s\" in vhost \"%s\" ...", u.name, b.settings.vhost), nil
}
