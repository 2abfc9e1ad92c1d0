package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// cli is redis-cli.
type cli struct {
	env      *kit.Env
	brand    brand
	host     string
	port     string
	user     string
	password string
	db       int
	repeat   int
	interval time.Duration
	stdin    bool // -x
	format   byte // 'r'aw, 's'tandard, 'c'sv
	scan     bool
	pattern  string
	noWarn   bool
	resp3    bool
	command  []string

	conn net.Conn
	in   *bufio.Reader
}

// cli is the client of a brand.
func (b brand) cli(ctx context.Context, env *kit.Env) error {
	c := &cli{
		env: env, brand: b, host: "127.0.0.1", port: "6379", repeat: 1, format: 'r', noWarn: true,
		password: env.Getenv("REDISCLI_AUTH"),
	}
	if env.Terminal != nil {
		c.format = 's'
	}
	if done, err := c.parse(env.Args[1:]); done || err != nil {
		if err != nil {
			fmt.Fprintln(env.Stderr, err)
			return kit.Exit(1)
		}
		return nil
	}
	if !c.noWarn {
		fmt.Fprintln(env.Stderr, "Warning: Using a password with '-a' or '-u' option on the command line interface "+
			"may not be safe.")
	}
	stop := context.AfterFunc(ctx, func() {
		if c.conn != nil {
			c.conn.Close()
		}
	})
	defer stop()
	err := c.run(ctx)
	if c.conn != nil {
		c.conn.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return kit.Exit(1)
	}
	return nil
}

// connect opens the connection, logs in and selects the database.
func (c *cli) connect(ctx context.Context) error {
	conn, err := c.env.Net.DialContext(ctx, "tcp", net.JoinHostPort(c.host, c.port))
	if err != nil {
		why := errnoText(err)
		if _, ok := errors.AsType[*net.DNSError](err); ok {
			why = "Name or service not known"
		}
		return saidf("Could not connect to %s at %s: %s", c.brand.title, net.JoinHostPort(c.host, c.port), why)
	}
	c.conn, c.in = conn, bufio.NewReader(conn)
	if c.password != "" {
		auth := []string{"AUTH", c.password}
		if c.user != "" {
			auth = []string{"AUTH", c.user, c.password}
		}
		if r, err := c.call(auth...); err != nil {
			return err
		} else if r.kind == failure {
			fmt.Fprintf(c.env.Stderr, "AUTH failed: %s\n", r.text)
		}
	}
	if c.resp3 {
		if _, err := c.call("HELLO", "3"); err != nil {
			return err
		}
	}
	if c.db != 0 {
		if r, err := c.call("SELECT", strconv.Itoa(c.db)); err != nil {
			return err
		} else if r.kind == failure {
			fmt.Fprintf(c.env.Stderr, "SELECT %d failed: %s\n", c.db, r.text)
		}
	}
	return nil
}

var errGone = errors.New("Error: Server closed the connection")

// call sends a command and reads the reply.
func (c *cli) call(args ...string) (reply, error) {
	if _, err := c.conn.Write(encode(args...)); err != nil {
		return reply{}, errGone
	}
	r, err := readReply(c.in)
	if err != nil {
		return reply{}, errGone
	}
	return r, nil
}

func (c *cli) run(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		if len(c.command) > 0 || c.scan || c.env.Terminal == nil {
			return err
		}
		fmt.Fprintln(c.env.Stderr, err)
	}
	switch {
	case c.scan:
		return c.scanKeys()
	case len(c.command) == 0 && !c.stdin:
		return c.interact(ctx)
	}
	if c.stdin {
		data, err := io.ReadAll(c.env.Stdin)
		if err != nil {
			return err
		}
		c.command = append(c.command, string(data))
	}
	for i := 0; i != c.repeat; i++ {
		if i > 0 && c.interval > 0 {
			t := time.NewTimer(c.interval)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			}
		}
		if err := c.issue(c.command); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) scanKeys() error {
	cursor := "0"
	for {
		args := []string{"SCAN", cursor}
		if c.pattern != "" {
			args = append(args, "MATCH", c.pattern)
		}
		r, err := c.call(args...)
		if err != nil {
			return err
		}
		if r.kind == failure || len(r.items) != 2 {
			return fmt.Errorf("ERROR: %s", r.text)
		}
		for _, key := range r.items[1].items {
			if c.format == 's' {
				fmt.Fprintln(c.env.Stdout, quote(key.text))
			} else {
				fmt.Fprintln(c.env.Stdout, key.text)
			}
		}
		if cursor = r.items[0].text; cursor == "0" {
			return nil
		}
	}
}

// streams are the commands after which the server goes on talking.
var streams = map[string]bool{"MONITOR": true, "SUBSCRIBE": true, "PSUBSCRIBE": true}

// issue runs a command and prints the reply, or all of them for those that do not end.
func (c *cli) issue(args []string) error {
	command := strings.ToUpper(args[0])
	r, err := c.call(args...)
	if command == "SHUTDOWN" && errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if streams[command] && r.kind != failure {
		if command != "MONITOR" && c.format == 's' {
			fmt.Fprintln(c.env.Stdout, "Reading messages... (press Ctrl-C to quit)")
		}
		for {
			c.print(r, false)
			if r, err = readReply(c.in); err != nil {
				return errGone
			}
		}
	}
	if command == "SELECT" && r.kind != failure && len(args) == 2 {
		c.db, _ = strconv.Atoi(args[1])
	}
	c.print(r, plain(args))
	return nil
}

// plain tells whether a reply is a text for people, which is never quoted.
func plain(args []string) bool {
	switch strings.ToUpper(args[0]) {
	case "INFO", "LOLWUT":
		return true
	case "CLIENT", "MEMORY", "CLUSTER", "LATENCY":
		return len(args) > 1 && strings.Contains("LIST INFO DOCTOR NODES GRAPH", strings.ToUpper(args[1]))
	}
	return false
}

// interact reads commands from standard input.
func (c *cli) interact(ctx context.Context) error {
	prompt := func() {
		if c.env.Terminal == nil {
			return
		}
		switch {
		case c.conn == nil:
			fmt.Fprint(c.env.Stdout, "not connected> ")
		case c.db != 0:
			fmt.Fprintf(c.env.Stdout, "%s:%s[%d]> ", c.host, c.port, c.db)
		default:
			fmt.Fprintf(c.env.Stdout, "%s:%s> ", c.host, c.port)
		}
	}
	lines := bufio.NewScanner(c.env.Stdin)
	lines.Buffer(nil, maxBulk)
	for prompt(); lines.Scan(); prompt() {
		args, err := splitArgs(lines.Text())
		if err != nil {
			fmt.Fprintln(c.env.Stdout, "Invalid argument(s)")
			continue
		}
		if len(args) == 0 {
			continue
		}
		if word := strings.ToLower(args[0]); word == "quit" || word == "exit" {
			return nil
		}
		times := 1
		if n, err := strconv.Atoi(args[0]); err == nil && n > 0 && len(args) > 1 {
			times, args = n, args[1:]
		}
		for range times {
			if c.conn == nil {
				err = c.connect(ctx)
			}
			if err == nil {
				err = c.issue(args)
			}
			if errors.Is(err, errGone) { // Once more over a new connection.
				c.conn.Close()
				if c.conn, err = nil, c.connect(ctx); err == nil {
					err = c.issue(args)
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintln(c.env.Stderr, err)
				if c.env.Terminal == nil {
					return nil
				}
			}
		}
	}
	return lines.Err()
}
