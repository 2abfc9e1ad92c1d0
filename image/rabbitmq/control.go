package rabbitmq

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// request is what a tool asks the node to do, and answer what it says.
type request struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

type answer struct {
	Title string     `json:"title,omitempty"` // said before it is done, unless it is to be quiet
	Head  []string   `json:"head,omitempty"`
	Rows  [][]string `json:"rows,omitempty"`
	Error string     `json:"error,omitempty"`
}

// maxRequest is how long a request of a tool may be.
const maxRequest = 64 << 10

// control serves tools that know the cookie.
func (b *broker) control(cookie string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Cookie")), []byte("erlang="+cookie)) == 0 {
			http.Error(w, "the Erlang cookie is another", http.StatusForbidden)
			return
		}
		var req request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := b.command(req)
		if err != nil {
			a.Error = err.Error()
		}
		_ = json.NewEncoder(w).Encode(a)
	})
}

// command is one of rabbitmqctl.
type command struct {
	usage string // of its arguments; one with a * may be left out
	do    func(b *broker, args []string) (answer, error)
}

// commands are those that the node does, by name.
var commands = map[string]command{
	"ping":   {"", func(b *broker, _ []string) (answer, error) { return b.said("Ping succeeded"), nil }},
	"status": {"", (*broker).status},

	"list_queues":      {"column...", (*broker).listQueues},
	"list_exchanges":   {"", (*broker).listExchanges},
	"list_bindings":    {"", (*broker).listBindings},
	"list_consumers":   {"", (*broker).listConsumers},
	"list_connections": {"", (*broker).listConnections},
	"list_vhosts": {"", func(b *broker, _ []string) (answer, error) {
		return answer{Title: "Listing vhosts ...", Head: []string{"name"}, Rows: [][]string{{b.settings.vhost}}}, nil
	}},
	"purge_queue":  {"queue", (*broker).purgeQueue},
	"delete_queue": {"queue", (*broker).deleteQueue},

	"list_users":        {"", (*broker).listUsers},
	"add_user":          {"username password", (*broker).addUser},
	"delete_user":       {"username", (*broker).deleteUser},
	"change_password":   {"username password", (*broker).changePassword},
	"authenticate_user": {"username password", (*broker).authenticateUser},
	"set_user_tags":     {"username tag...", (*broker).setUserTags},
	"list_permissions":  {"", (*broker).listPermissions},
	"set_permissions":   {"username conf write read", (*broker).setPermissions},
	"clear_permissions": {"username", (*broker).clearPermissions},
}

// fits reports whether there are as many arguments as a usage says.
func (c command) fits(n int) bool {
	want := len(strings.Fields(c.usage))
	if strings.HasSuffix(c.usage, "...") {
		return n >= want-1
	}
	return n == want
}

func (b *broker) command(req request) (answer, error) {
	c, ok := commands[req.Command]
	if !ok {
		return answer{}, saidf("Command '%s' not found", printable(req.Command))
	}
	if !c.fits(len(req.Args)) {
		return answer{}, saidf("Usage: rabbitmqctl %s", strings.TrimSpace(req.Command+" "+c.usage))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.do(b, req.Args)
}

func (b *broker) said(format string, args ...any) answer {
	return answer{Title: fmt.Sprintf(format, args...)}
}

func (b *broker) status([]string) (answer, error) {
	messages := 0
	for _, q := range b.queues {
		messages += q.len() + q.unacked
	}
	alarms := "(none)"
	if b.relief != nil {
		alarms = "memory resource limit alarm"
	}
	rows := [][]string{
		{"RabbitMQ version", Version},
		{"Node name", b.settings.node},
		{"Uptime (seconds)", strconv.Itoa(int(time.Since(b.started).Seconds()))},
		{"Data directory", b.settings.dir()},
		{"Alarms", alarms},
		{"Memory used (bytes)", strconv.FormatInt(b.env.Memory.Info().Used, 10)},
		{"Message bytes, watermark", fmt.Sprintf("%d, %d", b.bytes, watermark)},
		{"Connection count", strconv.Itoa(len(b.conns))},
		{"Queue count", strconv.Itoa(len(b.queues))},
		{"Message count", strconv.Itoa(messages)},
		{"Listener", "amqp, port " + b.settings.port},
		{"Listener", "http/prometheus, port " + metricsPort},
	}
	return answer{Title: fmt.Sprintf("Status of node %s ...", b.settings.node), Rows: rows}, nil
}

// columns of list_queues.
var columns = map[string]func(*broker, *queue) string{
	"name":                    func(_ *broker, q *queue) string { return q.name },
	"vhost":                   func(b *broker, _ *queue) string { return b.settings.vhost },
	"durable":                 func(_ *broker, q *queue) string { return strconv.FormatBool(q.durable) },
	"auto_delete":             func(_ *broker, q *queue) string { return strconv.FormatBool(q.autoDelete) },
	"exclusive":               func(_ *broker, q *queue) string { return strconv.FormatBool(q.owner != nil) },
	"messages":                func(_ *broker, q *queue) string { return strconv.Itoa(q.len() + q.unacked) },
	"messages_ready":          func(_ *broker, q *queue) string { return strconv.Itoa(q.len()) },
	"messages_unacknowledged": func(_ *broker, q *queue) string { return strconv.Itoa(q.unacked) },
	"consumers":               func(_ *broker, q *queue) string { return strconv.Itoa(len(q.consumers)) },
	"state":                   func(*broker, *queue) string { return "running" },
}

func (b *broker) listQueues(names []string) (answer, error) {
	if len(names) == 0 {
		names = []string{"name", "messages"}
	}
	for _, name := range names {
		if columns[name] == nil {
			return answer{}, saidf("Info key `%s` is not supported; there are %s", printable(name),
				strings.Join(named(columns), ", "))
		}
	}
	a := answer{Title: fmt.Sprintf("Listing queues for vhost %s ...", b.settings.vhost), Head: names}
	for _, name := range named(b.queues) {
		var row []string
		for _, c := range names {
			row = append(row, columns[c](b, b.queues[name]))
		}
		a.Rows = append(a.Rows, row)
	}
	return a, nil
}

func (b *broker) listExchanges([]string) (answer, error) {
	a := answer{
		Title: fmt.Sprintf("Listing exchanges for vhost %s ...", b.settings.vhost), Head: []string{"name", "type"},
	}
	for _, name := range named(b.exchanges) {
		a.Rows = append(a.Rows, []string{name, b.exchanges[name].kind})
	}
	return a, nil
}

func (b *broker) listBindings([]string) (answer, error) {
	a := answer{
		Title: fmt.Sprintf("Listing bindings for vhost %s...", b.settings.vhost),
		Head:  []string{"source_name", "destination_name", "routing_key"},
	}
	for _, name := range named(b.queues) {
		a.Rows = append(a.Rows, []string{"", name, name})
	}
	for _, name := range named(b.exchanges) {
		for _, at := range b.exchanges[name].bindings {
			a.Rows = append(a.Rows, []string{name, at.queue.name, at.key})
		}
	}
	return a, nil
}

func (b *broker) listConsumers([]string) (answer, error) {
	a := answer{
		Title: fmt.Sprintf("Listing consumers in vhost %s ...", b.settings.vhost),
		Head:  []string{"queue_name", "channel_pid", "consumer_tag", "ack_required", "prefetch_count"},
	}
	for _, name := range named(b.queues) {
		for _, c := range b.queues[name].consumers {
			a.Rows = append(a.Rows, []string{
				name, fmt.Sprintf("<0.%d.0>", c.channel.conn.pid), c.tag, strconv.FormatBool(!c.noAck),
				strconv.Itoa(c.prefetch),
			})
		}
	}
	return a, nil
}

func (b *broker) listConnections([]string) (answer, error) {
	a := answer{Title: "Listing connections ...", Head: []string{"user", "name", "channels", "state"}}
	for c := range b.conns {
		if c.user != nil {
			a.Rows = append(a.Rows, []string{c.user.name, c.name, strconv.Itoa(len(c.channels)), "running"})
		}
	}
	return a, nil
}

func (b *broker) purgeQueue(args []string) (answer, error) {
	q := b.queues[args[0]]
	if q == nil {
		return answer{}, errors.New(b.noQueue(args[0]).Error())
	}
	return b.said("Purging queue '%s' in vhost '%s' ... %d messages", q.name, b.settings.vhost, b.purge(q)), nil
}

func (b *broker) deleteQueue(args []string) (answer, error) {
	q := b.queues[args[0]]
	if q == nil {
		return answer{}, errors.New(b.noQueue(args[0]).Error())
	}
	n := q.len()
	b.remove(q)
	return b.said("Queue was successfully deleted with %d ready messages", n), nil
}
