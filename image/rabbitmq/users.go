package rabbitmq

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"regexp"
)

// What a permission is about.
const (
	configuring = iota
	writing
	reading
)

// maxUsers is how many there may be, and maxPattern how long the pattern of a permission.
const (
	maxUsers   = 200
	maxPattern = 200
)

// user is somebody who may log in.
type user struct {
	name  string
	tags  []string
	salt  []byte
	hash  []byte
	may   [3]*regexp.Regexp // nil of a user who may not use the vhost
	texts [3]string
}

func (u *user) setPassword(password string) {
	u.salt = make([]byte, 4)
	_, _ = rand.Read(u.salt)
	u.hash = hashed(u.salt, password)
}

func hashed(salt []byte, password string) []byte {
	sum := sha256.Sum256(append(append([]byte(nil), salt...), password...))
	return sum[:]
}

// permit lets a user configure, write to and read what patterns match.
func (u *user) permit(patterns [3]string) error {
	var may [3]*regexp.Regexp
	for i, p := range patterns {
		if len(p) > maxPattern {
			return fmt.Errorf("the pattern %.20q... is longer than %d", p, maxPattern)
		}
		re, err := regexp.Compile("^(?:" + p + ")$")
		if p == "" {
			re, err = regexp.Compile("^$")
		}
		if err != nil {
			return fmt.Errorf("%q is no regular expression", p)
		}
		may[i] = re
	}
	u.may, u.texts = may, patterns
	return nil
}

// authenticate returns the user with a name and a password, or nil.
func (b *broker) authenticate(name, password string) *user {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[name]
	if u == nil || subtle.ConstantTimeCompare(u.hash, hashed(u.salt, password)) == 0 {
		return nil
	}
	return u
}

// admit lets a user use the vhost.
func (b *broker) admit(u *user) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u.may[0] == nil {
		return hard(codeNotAllowed, "access to vhost '%s' refused for user '%s'", b.settings.vhost, u.name)
	}
	return nil
}

// may checks a permission. The broker's lock is held.
func (ch *channel) may(do int, name string) error {
	u, b := ch.conn.user, ch.conn.b
	if b.users[u.name] == u && u.may[do] != nil && u.may[do].MatchString(name) {
		return nil
	}
	return soft(codeAccessRefused, "%s access to '%s' in vhost '%s' refused for user '%s'",
		[]string{"configure", "write", "read"}[do], name, b.settings.vhost, u.name)
}
