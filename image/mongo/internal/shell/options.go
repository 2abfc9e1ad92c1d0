package shell

import (
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// options are those of the command line.
type options struct {
	target  *target
	tls     *tlsOptions
	eval    []string
	files   []string
	quiet   bool
	noDB    bool
	shell   bool // interactive after the scripts
	legacy  bool // called as mongo
	version bool
	help    bool
}

// parseOptions reads the command line. Anything that is not an option is the address, unless it is
// a script.
func parseOptions(env *kit.Env, legacy bool) (*options, error) {
	o := &options{legacy: legacy, tls: &tlsOptions{}}
	var host, port, address string
	set := &target{}
	values := map[string]*string{
		"host": &host, "port": &port, "username": &set.user, "u": &set.user, "password": &set.password,
		"p": &set.password, "authenticationDatabase": &set.source, "authenticationMechanism": &set.mechanism,
		"tlsCAFile": &o.tls.ca, "sslCAFile": &o.tls.ca, "tlsCertificateKeyFile": &o.tls.cert,
		"sslPEMKeyFile": &o.tls.cert,
	}
	flags := map[string]*bool{
		"quiet": &o.quiet, "nodb": &o.noDB, "shell": &o.shell, "version": &o.version, "help": &o.help, "h": &o.help,
		"tls": &o.tls.on, "ssl": &o.tls.on, "tlsAllowInvalidCertificates": &o.tls.insecure,
		"sslAllowInvalidCertificates": &o.tls.insecure, "tlsAllowInvalidHostnames": &o.tls.anyHost,
		"sslAllowInvalidHostnames": &o.tls.anyHost, "norc": new(bool), "verbose": new(bool), "v": new(bool),
	}
	ignored := map[string]bool{
		"apiVersion": true, "networkMessageCompressors": true, "tlsDisabledProtocols": true,
		"sslDisabledProtocols": true, "awsAccessKeyId": true,
	}
	args := env.Args[1:]
	next := func(name string) (string, error) {
		if len(args) == 0 {
			return "", fmt.Errorf("option --%s needs a value", name)
		}
		v := args[0]
		args = args[1:]
		return v, nil
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			if strings.HasSuffix(arg, ".js") || strings.HasSuffix(arg, ".mongodb") || address != "" || o.noDB {
				o.files = append(o.files, arg)
			} else {
				address = arg
			}
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "--") && len(name) > 1 && (name[0] == 'u' || name[0] == 'p') { // -uname
			name, value, hasValue = name[:1], arg[2:], true
		}
		to, isValue := values[name]
		flag, isFlag := flags[name]
		var err error
		switch {
		case isFlag:
			*flag = true
			continue
		case name == "json":
			continue
		case isValue || ignored[name] || name == "eval" || name == "file" || name == "f":
			if !hasValue {
				value, err = next(name)
			}
		default:
			err = fmt.Errorf("unrecognized option: %s", arg)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case isValue:
			*to = value
		case name == "eval":
			o.eval = append(o.eval, value)
		case name == "file" || name == "f":
			o.files = append(o.files, value)
		}
	}
	return o, o.connectTo(address, host, port, set)
}

// connectTo completes the target from what the options say.
func (o *options) connectTo(address, host, port string, set *target) error {
	t, secure, err := parseTarget(address)
	if err != nil {
		return err
	}
	if strings.HasPrefix(host, "mongodb://") {
		if t, secure, err = parseTarget(host); err != nil {
			return err
		}
		host = ""
	}
	if host != "" {
		t.address = host
	}
	if port != "" {
		h := t.address
		if i := strings.LastIndex(h, ":"); i >= 0 {
			h = h[:i]
		}
		if h == "" {
			h = "127.0.0.1"
		}
		t.address = h + ":" + port
	}
	for _, f := range []struct{ to, from *string }{
		{&t.user, &set.user},
		{&t.password, &set.password},
		{&t.source, &set.source},
		{&t.mechanism, &set.mechanism},
		{&secure.ca, &o.tls.ca},
		{&secure.cert, &o.tls.cert},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	secure.on = secure.on || o.tls.on
	secure.insecure = secure.insecure || o.tls.insecure
	secure.anyHost = secure.anyHost || o.tls.anyHost
	t.complete()
	o.target, o.tls = t, secure
	return nil
}
