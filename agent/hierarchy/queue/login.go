package queue

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Login says who we are to a server: by a user and a password, or by a token. Without any of them, nobody asks.
type Login struct {
	User, Password, Token string
}

func (l Login) empty() bool { return l == Login{} }

// Check says what is wrong with a login for the server at an address, or with the address. The error has no secret.
func (l Login) Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme):
		return errors.New("this is no address of a NATS server; write it as nats://host:4222")
	case u.User != nil:
		return ErrPassword
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address of a NATS server has nothing behind ? and #")
	case l.empty():
		return nil
	case l.Token != "" && l.User+l.Password != "":
		return errors.New("there is a token as well as a user and a password; the server knows one of them")
	case l.Token == "" && (l.User == "" || l.Password == ""):
		return errors.New("a user goes with a password")
	case u.Scheme != "tls" && u.Scheme != "wss" && !local(u.Hostname()):
		return fmt.Errorf("the password would go to %s unencrypted; write the address with tls:// or wss://", u.Host)
	}
	return nil
}

// ErrPassword is the error of an address with a password in it, which would be in command lines and in records.
var ErrPassword = errors.New("the address of a NATS server has no user, password or token in it: they would be in " +
	"the record")

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (l Login) options() (list []nats.Option) {
	switch {
	case l.Token != "":
		list = append(list, nats.Token(l.Token))
	case l.User != "":
		list = append(list, nats.UserInfo(l.User, l.Password))
	}
	return list
}

// hidden is a text without the secrets, which a server may say.
func (l Login) hidden(text string) string {
	for _, secret := range []string{l.Token, l.Password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[hidden]")
		}
	}
	return text
}
