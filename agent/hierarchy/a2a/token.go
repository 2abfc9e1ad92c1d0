package a2a

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// tokenForm is that of a bearer token (RFC 6750), long enough that no word of a text is one by chance. One may have
// maxToken characters.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]{8}[A-Za-z0-9._~+/-]*=*$`)

const maxToken = 1000

// CheckToken says why a token cannot be shown to the agent at an address. The error does not have it.
func CheckToken(address, token string) error {
	u, err := url.Parse(address)
	switch {
	case token == "":
		return nil
	case err != nil:
		return fmt.Errorf("%s is no address", address)
	case len(token) > maxToken || !tokenForm.MatchString(token):
		return errors.New("the token is no bearer token: it has 8 letters, digits and -._~+/ or more, and no blanks")
	case u.Scheme != "https" && !loopback(u.Hostname()):
		return fmt.Errorf("the token would go to %s unencrypted; use https", u.Host)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hidden is a text of the agent's without the token: it may say it, and what it says is recorded.
func (c *Client) hidden(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, c.token, "[hidden]")
}

// discreet is an error without the token.
func (c *Client) discreet(err error) error {
	if err == nil || c.hidden(err.Error()) == err.Error() {
		return err
	}
	return errors.New(c.hidden(err.Error()))
}
