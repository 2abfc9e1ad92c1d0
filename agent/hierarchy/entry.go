package hierarchy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/hierarchy/a2a"
	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/agent/hierarchy/seat"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// mode is how the members work together.
type mode string

const (
	manager mode = "manager"
	peers   mode = "peers"
	single  mode = "single"
)

// Who decides what members do, beside other agents of the lab.
const (
	byRules = "rules"
	byModel = "model"
)

// options are what can be said behind the name of the agent.
type options struct {
	mode       mode
	url        string // of a queue of the user's own
	login      queue.Login
	lostAfter  time.Duration // how long that queue may be away; 0 for what is usual
	service    string        // of a single maintainer; empty for all
	heartbeat  time.Duration
	patience   time.Duration
	guests     map[string]string // services whose maintainers are agents elsewhere, and where
	tokens     map[string]string // what these are shown, or show who join, by service
	listen     string            // where those who join connect to
	tell       io.Writer         // is told how they do
	env        func(string) string
	needsModel bool
	maintainer *agent.Entry                                 // who the maintainers are, if not our own
	mind       func(g *group, service string) (Mind, error) // that of tests
}

// Entries are the agent in its three ways. Others are the agents of the lab, any of which can be the maintainers. On
// out, which may be nil, the user is told how MCP clients join.
func Entries(others []agent.Entry, out io.Writer) []agent.Entry {
	o := options{
		mode: manager, heartbeat: DefaultHeartbeat, patience: DefaultPatience, env: os.Getenv,
		listen: defaultListen, tell: out,
	}
	doc := map[mode]string{
		manager: "a manager and a maintainer for each service, with a model or by rules",
		peers:   "maintainers among themselves, with a model or by rules",
		single:  "one maintainer alone, with a model or by rules",
	}
	var list []agent.Entry
	for _, m := range []mode{manager, peers, single} {
		o.mode = m
		e := o.entry("hierarchy")
		if e.Doc = doc[m]; m != manager {
			e.Name += ":" + string(m)
		} else {
			first := o
			e.Options = func(text string) (agent.Entry, error) {
				with, err := first.read(text, others)
				if err != nil {
					return agent.Entry{}, err
				}
				made := with.entry("hierarchy:" + text)
				made.Doc = doc[with.mode]
				return made, nil
			}
		}
		list = append(list, e)
	}
	return list
}

func (o options) entry(name string) agent.Entry {
	return agent.Entry{Name: name, NeedsModel: o.needsModel, Live: true, New: o.newAgent}
}

// optionNames are the options with a value.
var optionNames = []string{"queue", "service", "heartbeat", "patience", "maintainer", "member", "listen"}

// read reads options, which commas part: a mode, "model", or NAME=VALUE.
func (o options) read(text string, others []agent.Entry) (options, error) {
	for _, word := range strings.Split(text, ",") {
		name, value, set := strings.Cut(strings.TrimSpace(word), "=")
		if set && value == "" {
			return o, fmt.Errorf("the option %s has no value", name)
		}
		var err error
		switch {
		case !set && (name == string(manager) || name == string(peers) || name == string(single)):
			o.mode = mode(name)
		case !set && name == byModel:
			o.needsModel = true
		case set && name == "queue":
			err = o.send(value)
		case set && name == "service":
			o.service = value
		case set && name == "heartbeat":
			o.heartbeat, err = positive(name, value)
		case set && name == "patience":
			o.patience, err = positive(name, value)
		case set && name == "member":
			err = o.join(value)
		case set && name == "listen":
			o.listen, err = value, seat.CheckListen(value)
		case set && name == "maintainer":
			err = o.hire(value, others)
		default:
			err = unknown(word, name, set)
		}
		if err != nil {
			return o, err
		}
	}
	if len(o.guests) > 0 && o.mode == single {
		return o, errors.New("the option member is for a group: a single maintainer works alone")
	}
	if o.service != "" && o.mode != single {
		return o, fmt.Errorf("the option service is for a single maintainer; write "+
			"hierarchy:single,service=%s", o.service)
	}
	return o, nil
}

// join has an agent elsewhere be the maintainer of a service, given as SERVICE@URL, or as SERVICE@mcp one that joins.
func (o *options) join(value string) error {
	service, at, ok := strings.Cut(value, "@")
	if !ok || service == "" {
		return fmt.Errorf("member=%s does not say who is where; write it as member=catalogue@https://host/path, or as "+
			"member=catalogue@mcp for an MCP client that joins", value)
	}
	if at != byMCP {
		if err := a2a.CheckURL(at); err != nil {
			return err
		}
	}
	if _, twice := o.guests[service]; twice {
		return fmt.Errorf("%s has two maintainers; one service has one", service)
	}
	o.guests = maps.Clone(o.guests)
	if o.guests == nil {
		o.guests = map[string]string{}
	}
	o.guests[service] = at
	token := strings.TrimSpace(o.env(tokenVariable(service)))
	to := at
	if at == byMCP { // It is shown to us, on this machine.
		to = "http://localhost"
	}
	if err := a2a.CheckToken(to, token); err != nil {
		return fmt.Errorf("%s: %w", tokenVariable(service), err)
	}
	if token != "" {
		o.tokens = maps.Clone(o.tokens)
		if o.tokens == nil {
			o.tokens = map[string]string{}
		}
		o.tokens[service] = token
	}
	return nil
}

// tokenVariable has the token of the agent that maintains a service. Each has one of its own, so that none gets what is
// meant for another, and its name tells that it is nothing for the programs of an environment.
func tokenVariable(service string) string {
	return agent.MemberToken + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(service))
}

func unknown(word, name string, set bool) error {
	known := append([]string{string(manager), string(peers), string(single), byModel}, optionNames...)
	if set || contains(optionNames, name) {
		known = optionNames
	}
	near := strict.Nearest(name, known)
	if near != "" {
		return fmt.Errorf("hierarchy has no option %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("hierarchy has no option %q; there are manager, peers, single, model, and %s with a value", word,
		strings.Join(optionNames, ", "))
}

// hire takes an agent of the lab for the maintainers.
func (o *options) hire(name string, others []agent.Entry) error {
	var names []string
	for i := range others {
		if others[i].Name == name && !others[i].KnowsTruth && others[i].Baseline == 0 {
			o.maintainer, o.needsModel = &others[i], o.needsModel || others[i].NeedsModel
			return nil
		}
		names = append(names, others[i].Name)
	}
	if near := strict.Nearest(name, names); near != "" && near != name {
		return fmt.Errorf("there is no agent %q to be a maintainer; did you mean %q?", name, near)
	}
	return fmt.Errorf("the agent %q cannot be a maintainer", name)
}

// The variables that say who the group is to a queue of the user's own.
const (
	queueUser     = agent.Queue + "USER"
	queuePassword = agent.Queue + "PASSWORD"
	queueToken    = agent.Queue + "TOKEN"
)

// send has messages go over a server of the user's own. The error does not have the address: it may have a password.
func (o *options) send(at string) error {
	o.url = at
	o.login = queue.Login{User: o.env(queueUser), Password: o.env(queuePassword), Token: o.env(queueToken)}
	err := o.login.Check(at)
	if errors.Is(err, queue.ErrPassword) {
		return fmt.Errorf("queue: %w; put them in %s and %s, or in %s", err, queueUser, queuePassword, queueToken)
	}
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

func positive(name, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s=%s is no time; write it as %s=90s", name, value, name)
	}
	return d, nil
}
