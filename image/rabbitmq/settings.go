package rabbitmq

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	dataDir    = "/var/lib/rabbitmq"
	cookieFile = dataDir + "/.erlang.cookie"
	// ctlAddress is where rabbitmqctl finds the node.
	ctlAddress  = "127.0.0.1:25672"
	metricsPort = "15692"
)

// settings are what RABBITMQ_ variables say.
type settings struct {
	node     string // rabbit@localhost
	port     string
	user     string
	password string
	vhost    string
	managed  bool // with the management plugin
}

var (
	nodePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,60}@[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)
	namePattern = regexp.MustCompile(`^[^\x00-\x1f]{1,200}$`)
)

// readSettings returns all mistakes at once.
func readSettings(env *kit.Env) (*settings, error) {
	s := &settings{
		node:     cmp.Or(env.Getenv("RABBITMQ_NODENAME"), "rabbit@"+env.Hostname),
		port:     cmp.Or(env.Getenv("RABBITMQ_NODE_PORT"), "5672"),
		user:     cmp.Or(env.Getenv("RABBITMQ_DEFAULT_USER"), "guest"),
		password: cmp.Or(env.Getenv("RABBITMQ_DEFAULT_PASS"), "guest"),
		vhost:    cmp.Or(env.Getenv("RABBITMQ_DEFAULT_VHOST"), "/"),
	}
	var errs []error
	if !nodePattern.MatchString(s.node) {
		errs = append(errs, fmt.Errorf("RABBITMQ_NODENAME=%q: want a name such as rabbit@localhost", s.node))
	}
	if n, err := strconv.ParseUint(s.port, 10, 16); err != nil || n == 0 {
		errs = append(errs, fmt.Errorf("RABBITMQ_NODE_PORT=%q: want a port", s.port))
	}
	for name, value := range map[string]string{
		"RABBITMQ_DEFAULT_USER": s.user, "RABBITMQ_DEFAULT_PASS": s.password, "RABBITMQ_DEFAULT_VHOST": s.vhost,
	} {
		if !namePattern.MatchString(value) {
			errs = append(errs, fmt.Errorf("%s: want at most 200 characters that can be printed", name))
		}
	}
	return s, errors.Join(errs...)
}

// dir is where a node keeps what is durable.
func (s *settings) dir() string { return path.Join(dataDir, "mnesia", s.node) }
