package nginx

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release that this behaves like.
const Version = "1.27.5"

// options are the command line's.
type options struct {
	file    string // -c
	extra   string // -g
	test    bool   // -t, -T
	dump    bool   // -T
	quiet   bool   // -q
	signal  string // -s
	version bool   // -v, -V
	help    bool   // -?, -h
}

// Main is the server, and the command that tests its configuration and sends it signals.
func Main(ctx context.Context, env *kit.Env) error {
	o, err := parseOptions(env.Args[1:])
	if err != nil {
		fmt.Fprintf(env.Stderr, "nginx: %v\n", err)
		return kit.Exit(1)
	}
	switch {
	case o.help:
		fmt.Fprint(env.Stderr, "nginx version: nginx/"+Version+"\n"+usage)
		return nil
	case o.version:
		fmt.Fprintln(env.Stderr, "nginx version: nginx/"+Version)
		return nil
	case o.test:
		return o.runTest(ctx, env)
	case o.signal != "":
		return o.sendSignal(ctx, env)
	}
	return o.serve(ctx, env)
}

const usage = `Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]
             [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -c filename   : set configuration file (default: /etc/nginx/nginx.conf)
  -g directives : set global directives out of configuration file

`

func parseOptions(args []string) (*options, error) {
	o := &options{file: confDir + "/nginx.conf"}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			return nil, fmt.Errorf("invalid option: %q", arg)
		}
		for flags := arg[1:]; flags != ""; {
			c := flags[0]
			flags = flags[1:]
			switch c {
			case '?', 'h':
				o.help = true
			case 'v', 'V':
				o.version = true
			case 't':
				o.test = true
			case 'T':
				o.test, o.dump = true, true
			case 'q':
				o.quiet = true
			case 's', 'c', 'g', 'p', 'e':
				value := flags
				flags = ""
				if value == "" {
					if len(args) == 0 {
						return nil, fmt.Errorf("option \"-%c\" requires parameter", c)
					}
					value, args = args[0], args[1:]
				}
				if err := o.set(c, value); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("invalid option: %q", arg)
			}
		}
	}
	return o, nil
}

// set notes an option with a value.
func (o *options) set(c byte, value string) error {
	switch c {
	case 'c':
		o.file = confPath(value)
	case 'g':
		o.extra = value
	case 's':
		if _, ok := commands[value]; !ok {
			return fmt.Errorf("invalid option: \"-s %s\"", value)
		}
		o.signal = value
	}
	return nil
}

// runTest reads the configuration and does whatever can fail, but serves nothing.
func (o *options) runTest(ctx context.Context, env *kit.Env) error {
	in := newInstance(env)
	cfg, err := load(ctx, env, o.file, o.extra)
	if err == nil {
		in.warn(cfg)
		if !o.quiet {
			fmt.Fprintf(in.stderr, "nginx: the configuration file %s syntax is ok\n", o.file)
		}
		err = in.makeTempDirs()
	}
	if err == nil {
		var l *logs
		if l, err = in.openLogs(cfg); err == nil {
			l.close()
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		in.emerg(err.Error())
		fmt.Fprintf(in.stderr, "nginx: configuration file %s test failed\n", o.file)
		return kit.Exit(1)
	}
	if !o.quiet {
		fmt.Fprintf(in.stderr, "nginx: configuration file %s test is successful\n", o.file)
	}
	if o.dump {
		data, err := env.ReadFile(o.file)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "# configuration file %s:\n%s\n", o.file, data)
	}
	return nil
}

// commands are the signals that -s sends.
var commands = map[string]syscall.Signal{
	"stop": syscall.SIGTERM, "quit": syscall.SIGQUIT, "reopen": syscall.SIGUSR1, "reload": syscall.SIGHUP,
}

func (o *options) sendSignal(ctx context.Context, env *kit.Env) error {
	in := newInstance(env)
	cfg, err := load(ctx, env, o.file, o.extra)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		in.emerg(err.Error())
		return kit.Exit(1)
	}
	data, err := env.ReadFile(cfg.pid)
	if err != nil {
		fmt.Fprintf(env.Stderr, "nginx: [error] open() %q failed (%s)\n", cfg.pid, errnoText(err))
		return kit.Exit(1)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		fmt.Fprintf(env.Stderr, "nginx: [error] invalid PID number %q in %q\n", strings.TrimSpace(string(data)),
			cfg.pid)
		return kit.Exit(1)
	}
	sig := commands[o.signal]
	in.write(in.stderr, levelNotice, "", "signal process started")
	if err := env.Procs.Signal(pid, sig); err != nil {
		fmt.Fprintf(env.Stderr, "nginx: [alert] kill(%d, %d) failed (%s)\n", pid, int(sig), errnoText(err))
		return kit.Exit(1)
	}
	return nil
}

// serve runs the server until a signal stops it.
func (o *options) serve(ctx context.Context, env *kit.Env) error {
	in := newInstance(env)
	cfg, err := load(ctx, env, o.file, o.extra)
	var signals <-chan syscall.Signal
	if err == nil {
		in.warn(cfg)
		if cfg.daemon {
			return o.daemonize(ctx, env)
		}
		signals = env.Notify() // Whoever sees the server listen may stop it.
		err = in.start(ctx, cfg)
	}
	if err == nil {
		err = in.writePID(cfg)
	}
	if err != nil {
		in.stop(ctx, false)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		in.emerg(err.Error())
		return kit.Exit(1)
	}
	in.logf(levelNotice, `using the "epoll" event method`)
	in.logf(levelNotice, "nginx/%s", Version)
	in.logf(levelNotice, "start worker processes")
	return in.obey(ctx, signals, o)
}

// daemonize leaves a server in the background, which is the default. Where it is a container's
// command, the container ends with it.
func (o *options) daemonize(ctx context.Context, env *kit.Env) error {
	child := env.Child(env.Args[0], "-c", o.file, "-g", o.extra+" daemon off;")
	child.Stdin = strings.NewReader("")
	_, err := env.Procs.Start(context.WithoutCancel(ctx), child)
	return err
}

// obey does what signals say.
func (in *instance) obey(ctx context.Context, signals <-chan syscall.Signal, o *options) error {
	for {
		select {
		case <-ctx.Done():
			in.stop(ctx, false)
			return ctx.Err()
		case sig := <-signals:
			name := map[syscall.Signal]string{
				syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT",
				syscall.SIGUSR1: "SIGUSR1", syscall.SIGTERM: "SIGTERM", syscall.SIGWINCH: "SIGWINCH",
			}[sig]
			told := func(what string) { in.logf(levelNotice, "signal %d (%s) received, %s", int(sig), name, what) }
			switch sig {
			case syscall.SIGTERM, syscall.SIGINT:
				told("exiting")
				in.logf(levelNotice, "exit")
				in.stop(ctx, false)
				return nil
			case syscall.SIGQUIT, syscall.SIGWINCH:
				told("shutting down")
				in.logf(levelNotice, "gracefully shutting down")
				in.stop(ctx, true)
				return ctx.Err()
			case syscall.SIGHUP:
				told("reconfiguring")
				in.reload(ctx, o)
			case syscall.SIGUSR1:
				told("reopening logs")
				in.reopen()
			}
		}
	}
}

// reload reads the configuration again. A wrong one is reported, and the old one stays in use.
func (in *instance) reload(ctx context.Context, o *options) {
	in.logf(levelNotice, "reconfiguring")
	cfg, err := load(ctx, in.env, o.file, o.extra)
	if err == nil {
		err = in.start(ctx, cfg)
	}
	if err != nil {
		in.logf(levelEmerg, "%v", err)
		return
	}
	in.logf(levelNotice, "start worker processes")
}
