package rabbitmq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Exit codes of rabbitmqctl.
const (
	exitUsage       = 64
	exitData        = 65
	exitUnavailable = 69
	exitDenied      = 77
)

// ctlTimeout is how long the node may take to answer a tool.
const ctlTimeout = 30 * time.Second

// flags are what a user of a tool has written beside the command.
type flags struct {
	quiet, bare, csv bool
	vhost            string
}

// Ctl is rabbitmqctl.
func Ctl(ctx context.Context, env *kit.Env) error {
	s, err := readSettings(env)
	if err != nil {
		fmt.Fprintln(env.Stderr, "Error:", err)
		return kit.Exit(exitUsage)
	}
	f, words, err := readFlags(env.Args[1:])
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error: %v\n", err)
		return kit.Exit(exitUsage)
	}
	switch {
	case len(words) == 0 || words[0] == "help":
		help(env.Stdout)
		return nil
	case words[0] == "version":
		fmt.Fprintln(env.Stdout, Version)
		return nil
	}
	c, known := commands[words[0]]
	if !known {
		fmt.Fprintf(env.Stderr, "Command '%s' not found; 'rabbitmqctl help' lists those that there are\n",
			printable(words[0]))
		return kit.Exit(exitUsage)
	}
	if !c.fits(len(words) - 1) {
		fmt.Fprintf(env.Stderr, "Error (argument validation): wrong number of arguments\nUsage: rabbitmqctl %s\n",
			strings.TrimSpace(words[0]+" "+c.usage))
		return kit.Exit(exitUsage)
	}
	if f.vhost != "" && f.vhost != s.vhost {
		fmt.Fprintf(env.Stderr, "Error: Virtual host '%s' does not exist\n", printable(f.vhost))
		return kit.Exit(exitData)
	}
	ctx, cancel := context.WithTimeout(ctx, ctlTimeout)
	defer cancel()
	return send(ctx, env, s, f, request{words[0], words[1:]})
}

// readFlags tells flags from words.
func readFlags(list []string) (f flags, words []string, err error) {
	for i := 0; i < len(list); i++ {
		name, value, given := strings.Cut(list[i], "=")
		switch name {
		case "-q", "--quiet", "-s", "--silent":
			f.quiet = true
			f.bare = f.bare || name == "-s" || name == "--silent"
		case "--no-table-headers":
			f.bare = true
		case "--formatter", "-p", "--vhost", "-t", "--timeout", "-n", "--node":
			if !given {
				if i++; i == len(list) {
					return f, nil, fmt.Errorf("%s wants a value", name)
				}
				value = list[i]
			}
			switch {
			case (name == "-p" || name == "--vhost"):
				f.vhost = value
			case name == "--formatter" && value != "csv" && value != "table" && value != "pretty_table":
				return f, nil, fmt.Errorf("--formatter: want table or csv, not %q", value)
			case name == "--formatter":
				f.csv = value == "csv"
			}
		default:
			if strings.HasPrefix(name, "-") && len(name) > 1 {
				return f, nil, fmt.Errorf("unknown option %s", name)
			}
			words = append(words, list[i])
		}
	}
	return f, words, nil
}

func help(w io.Writer) {
	fmt.Fprintln(w, "Usage\n\n"+
		"rabbitmqctl [-q] [-s] [-p vhost] [--formatter table|csv] <command> [<arguments>]\n\nCommands:")
	list := []string{"version"}
	for name, c := range commands {
		list = append(list, strings.TrimSpace(name+" "+c.usage))
	}
	slices.Sort(list)
	fmt.Fprintln(w, "  "+strings.Join(list, "\n  "))
}

// send has the node do a command, and prints what it says.
func send(ctx context.Context, env *kit.Env, s *settings, f flags, req request) error {
	cookie, err := env.ReadFile(cookieFile)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error: cannot read the Erlang cookie: %v\n", err)
		return kit.Exit(exitDenied)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+ctlAddress+"/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Cookie", "erlang="+string(cookie))
	t := env.HTTPTransport()
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(r)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Error: unable to perform an operation on node '%s'. "+
			"The node is not running, or does not answer: %v\n", s.node, err)
		return kit.Exit(exitUnavailable)
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&a); err != nil || resp.StatusCode != 200 {
		fmt.Fprintf(env.Stderr, "Error: node '%s' refuses: %s\n", s.node, resp.Status)
		return kit.Exit(exitDenied)
	}
	if a.Error != "" {
		fmt.Fprintf(env.Stderr, "Error:\n%s\n", a.Error)
		return kit.Exit(exitData)
	}
	f.print(env.Stdout, a)
	return nil
}

func (f flags) print(w io.Writer, a answer) {
	if !f.quiet && a.Title != "" {
		fmt.Fprintln(w, a.Title)
	}
	between := "\t"
	if f.csv {
		between = ","
	}
	if len(a.Head) > 0 && !f.bare {
		fmt.Fprintln(w, strings.Join(a.Head, between))
	}
	for _, row := range a.Rows {
		fmt.Fprintln(w, strings.Join(row, between))
	}
}

// said is an error in the words of the original, which begin with a capital.
type said string

func (s said) Error() string { return string(s) }

func saidf(format string, args ...any) error { return said(fmt.Sprintf(format, args...)) }
