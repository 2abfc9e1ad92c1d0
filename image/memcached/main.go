package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release that this behaves like.
const Version = "1.6.7"

// The exit codes of sysexits.h.
const (
	exitUsage = 64
	exitUser  = 67
	exitOS    = 71
)

// options are the command line's.
type options struct {
	port      int
	listen    string // -l
	memory    int64  // -m, bytes
	maxConns  int    // -c
	maxItem   int    // -I, bytes
	threads   int    // -t
	verbosity int
	noEvict   bool   // -M
	user      string // -u
}

// Main is the server.
func Main(ctx context.Context, env *kit.Env) error {
	o, done, err := parseOptions(env)
	if done {
		return nil
	}
	if err == nil {
		err = o.check(env)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		var u usageError
		if errors.As(err, &u) {
			return kit.Exit(u.code)
		}
		return kit.Exit(1)
	}
	listeners, err := o.open(ctx, env)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return kit.Exit(exitOS)
	}
	s := newServer(env, *o)
	s.remember()
	defer s.holder.Release()
	if k, ok := env.Kept().(*kept); ok {
		if err := s.store.takeOver(k); err != nil {
			fmt.Fprintln(env.Stderr, err)
			return kit.Exit(exitOS)
		}
	}
	env.Keep(s.store.keep)
	return s.run(ctx, listeners)
}

// usageError ends the program with its code.
type usageError struct {
	text string
	code int
}

func (e usageError) Error() string { return e.text }

// longOptions are the other names of options.
var longOptions = map[string]byte{
	"port": 'p', "listen": 'l', "memory-limit": 'm', "conn-limit": 'c', "max-item-size": 'I', "threads": 't',
	"verbose": 'v', "disable-evictions": 'M', "user": 'u', "version": 'V', "help": 'h', "udp-port": 'U',
	"extended": 'o', "slab-growth-factor": 'f', "slab-min-size": 'n', "max-reqs-per-event": 'R', "listen-backlog": 'b',
	"protocol": 'B', "disable-cas": 'C', "daemon": 'd', "lock-memory": 'k', "pidfile": 'P',
}

// withValue are the options that take one.
const withValue = "plmcItuUofnRbBPsaD"

func parseOptions(env *kit.Env) (o *options, done bool, err error) {
	o = &options{port: 11211, memory: 64 << 20, maxConns: 1024, maxItem: 1 << 20, threads: 4}
	args := env.Args[1:]
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		letters, value, hasValue := strings.TrimPrefix(arg, "-"), "", false
		switch {
		case strings.HasPrefix(arg, "--"):
			name := ""
			name, value, hasValue = strings.Cut(arg[2:], "=")
			letter, ok := longOptions[name]
			if !ok {
				return nil, false, usageError{
					fmt.Sprintf("%s: unrecognized option '--%s'\nIllegal argument \"?\"", env.Args[0], name), 1,
				}
			}
			letters = string(letter)
		case !strings.HasPrefix(arg, "-") || arg == "-":
			continue // getopt passes over these.
		}
		for letters != "" {
			c := letters[0]
			letters = letters[1:]
			if strings.IndexByte(withValue, c) >= 0 && !hasValue {
				value, letters = letters, ""
				if value == "" {
					if len(args) == 0 {
						return nil, false,
							usageError{fmt.Sprintf("%s: option requires an argument -- '%c'\nIllegal argument \"?\"",
								env.Args[0], c), 1}
					}
					value, args = args[0], args[1:]
				}
			}
			if c == 'V' {
				fmt.Fprintln(env.Stdout, "memcached "+Version)
				return o, true, nil
			}
			if c == 'h' {
				fmt.Fprint(env.Stdout, usage)
				return o, true, nil
			}
			if err := o.set(env.Args[0], c, value); err != nil {
				return nil, false, err
			}
			hasValue = false
		}
	}
	return o, false, nil
}

func (o *options) set(program string, c byte, value string) error {
	switch c {
	case 'p':
		o.port = atoi(value)
		if o.port < 0 || o.port > 65535 {
			return usageError{fmt.Sprintf("ERROR: Invalid port number %s.", value), exitUsage}
		}
	case 'l':
		if o.listen != "" {
			value = o.listen + "," + value
		}
		o.listen = value
	case 'm':
		o.memory = int64(atoi(value)) << 20
	case 'c':
		if o.maxConns = atoi(value); o.maxConns <= 0 {
			return usageError{"Maximum connections must be greater than 0", 1}
		}
	case 't':
		if o.threads = atoi(value); o.threads <= 0 {
			return usageError{"Number of threads must be greater than 0", 1}
		}
	case 'I':
		unit := 1
		number := value
		switch {
		case strings.HasSuffix(strings.ToLower(value), "k"):
			unit, number = 1<<10, value[:len(value)-1]
		case strings.HasSuffix(strings.ToLower(value), "m"):
			unit, number = 1<<20, value[:len(value)-1]
		}
		o.maxItem = atoi(number) * unit
	case 'v':
		o.verbosity++
	case 'M':
		o.noEvict = true
	case 'u':
		o.user = value
	case 'U', 'o', 'f', 'n', 'R', 'b', 'B', 'C', 'd', 'k', 'P', 'r', 'L', 'F':
		// They change nothing that can be seen here.
	default:
		return usageError{fmt.Sprintf("%s: invalid option -- '%c'\nIllegal argument \"?\"", program, c), 1}
	}
	return nil
}

// atoi is C's: what is no number is 0.
func atoi(s string) int {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && s[end] == '-') {
		end++
	}
	n, _ := strconv.Atoi(s[:end])
	return n
}

// check does what a real one checks before it listens.
func (o *options) check(env *kit.Env) error {
	switch {
	case o.maxItem < 1024:
		return usageError{"Item max size cannot be less than 1024 bytes.", exitUsage}
	case int64(o.maxItem) > o.memory/2:
		return usageError{"Cannot set item size limit higher than 1/2 of memory max.", exitUsage}
	case o.maxItem > 1<<30:
		return usageError{"Cannot set item size limit higher than a gigabyte.", exitUsage}
	case env.User.UID == 0 && o.user == "":
		return usageError{"can't run as root without the -u switch", exitUsage}
	case env.User.UID == 0 && o.user != "root":
		data, err := env.ReadFile("/etc/passwd")
		if err != nil || !strings.Contains("\n"+string(data), "\n"+o.user+":") {
			return usageError{fmt.Sprintf("can't find the user %s to switch to", o.user), exitUser}
		}
	}
	return nil
}

// open listens on all addresses.
func (o *options) open(ctx context.Context, env *kit.Env) (list []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, ln := range list {
				ln.Close()
			}
		}
	}()
	if o.listen == "" {
		ln, err := env.Net.Listen("tcp", fmt.Sprintf(":%d", o.port))
		if err != nil {
			return nil, fmt.Errorf("failed to listen on TCP port %d: %s", o.port, errnoText(err))
		}
		return []net.Listener{ln}, nil
	}
	for address := range strings.SplitSeq(o.listen, ",") {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = address, strconv.Itoa(o.port)
		}
		addrs, err := env.Net.LookupHost(ctx, host)
		if err != nil {
			return list, fmt.Errorf("getaddrinfo(): Name or service not known\nfailed to listen on one of "+
				"interface(s) %s: Success", o.listen)
		}
		ln, err := env.Net.Listen("tcp", net.JoinHostPort(addrs[0], port))
		if err != nil {
			return list, fmt.Errorf("bind(): %s\nfailed to listen on one of interface(s) %s: Invalid argument",
				errnoText(err), o.listen)
		}
		list = append(list, ln)
	}
	return list, nil
}

// errnoText words an error as the C library does.
func errnoText(err error) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

const usage = `memcached ` + Version + `
-p, --port=<num>          TCP port to listen on (default: 11211)
-l, --listen=<addr>       interface to listen on (default: INADDR_ANY)
-m, --memory-limit=<num>  item memory in megabytes (default: 64)
-M, --disable-evictions   return error on memory exhausted instead of evicting
-c, --conn-limit=<num>    max simultaneous connections (default: 1024)
-I, --max-item-size=<num> adjusts max item size
                          (default: 1m, min: 1k, max: 1024m)
-t, --threads=<num>       number of threads to use (default: 4)
-u, --user=<user>         assume identity of <username> (only when run as root)
-v, --verbose             verbose (print errors/warnings while in event loop)
-vv                       very verbose (also print client commands/responses)
-V, --version             print version and exit
-h, --help                print this help and exit
`
