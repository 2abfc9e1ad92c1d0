package mongo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"sigs.k8s.io/yaml"

	"github.com/aiopslab/aiopslab/kit"
)

// kind is what an option's value is.
type kind int

const (
	text kind = iota
	number
	boolean // on a command line it has no value
)

// option is a setting of mongod: by its path in the configuration file, and by its names on the
// command line.
type option struct {
	path  string
	kind  kind
	names []string
}

var knownOptions = []option{
	{"net.port", number, []string{"port"}},
	{"net.bindIp", text, []string{"bind_ip"}},
	{"net.bindIpAll", boolean, []string{"bind_ip_all"}},
	{"net.ipv6", boolean, []string{"ipv6"}},
	{"net.maxIncomingConnections", number, []string{"maxConns"}},
	{"net.unixDomainSocket.enabled", boolean, nil},
	{"net.tls.mode", text, []string{"tlsMode", "sslMode"}},
	{"net.tls.certificateKeyFile", text, []string{"tlsCertificateKeyFile", "sslPEMKeyFile"}},
	{"net.tls.CAFile", text, []string{"tlsCAFile", "sslCAFile"}},
	{
		"net.tls.allowConnectionsWithoutCertificates", boolean,
		[]string{"tlsAllowConnectionsWithoutCertificates", "sslAllowConnectionsWithoutCertificates"},
	},
	{
		"net.tls.allowInvalidCertificates", boolean,
		[]string{"tlsAllowInvalidCertificates", "sslAllowInvalidCertificates"},
	},
	{"net.tls.allowInvalidHostnames", boolean, []string{"tlsAllowInvalidHostnames", "sslAllowInvalidHostnames"}},
	{"security.authorization", text, nil},
	{"storage.dbPath", text, []string{"dbpath"}},
	{"storage.engine", text, []string{"storageEngine"}},
	{"storage.directoryPerDB", boolean, []string{"directoryperdb"}},
	{"storage.journal.enabled", boolean, []string{"journal"}},
	{"storage.journal.commitIntervalMs", number, []string{"journalCommitInterval"}},
	{"storage.wiredTiger.engineConfig.cacheSizeGB", number, []string{"wiredTigerCacheSizeGB"}},
	{"operationProfiling.slowOpThresholdMs", number, []string{"slowms"}},
	{"processManagement.pidFilePath", text, []string{"pidfilepath"}},
	{"processManagement.timeZoneInfo", text, []string{"timeZoneInfo"}},
	{"systemLog.destination", text, nil},
	{"systemLog.path", text, []string{"logpath"}},
	{"systemLog.logAppend", boolean, []string{"logappend"}},
	{"systemLog.quiet", boolean, []string{"quiet"}},
	{"systemLog.verbosity", number, []string{"verbose"}},
}

// settings are those of mongod by path.
type settings map[string]string

func (o settings) text(path, otherwise string) string {
	if v := o[path]; v != "" {
		return v
	}
	return otherwise
}

func (o settings) is(path string) bool { return o[path] == "true" }

// usageError is a command line or a configuration that is wrong.
type usageError string

func (e usageError) Error() string { return string(e) }

// parseOptions reads a command line and the configuration file it names. The command line wins.
func parseOptions(env *kit.Env) (settings, error) {
	o := settings{}
	args := env.Args[1:]
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") {
			return nil, usageError("Error parsing command line: too many positional options have been specified on " +
				"the command line")
		}
		if name == "v" || strings.Trim(name, "v") == "" {
			o["systemLog.verbosity"] = strconv.Itoa(len(name))
			continue
		}
		needValue, set, err := o.named(env, name)
		if err != nil {
			return nil, err
		}
		if needValue && !hasValue {
			if len(args) == 0 {
				return nil, usageError(fmt.Sprintf(
					"Error parsing command line: the required argument for option '--%s' is missing", name))
			}
			value, args = args[0], args[1:]
		}
		if err := set(value); err != nil {
			return nil, err
		}
	}
	return o, o.check()
}

// named finds what an option of the command line does, and whether it has a value.
func (o settings) named(env *kit.Env, name string) (needValue bool, set func(string) error, err error) {
	switch name {
	case "auth":
		return false, func(string) error { o["security.authorization"] = "enabled"; return nil }, nil
	case "noauth":
		return false, func(string) error { o["security.authorization"] = "disabled"; return nil }, nil
	case "nojournal", "nounixsocket":
		return false, func(string) error { return nil }, nil
	case "config", "f":
		return true, func(file string) error { return o.readConfig(env, file) }, nil
	case "setParameter":
		return true, func(v string) error {
			parameter, value, ok := strings.Cut(v, "=")
			if !ok {
				return usageError("Illegal --setParameter parameter: \"" + v + "\"")
			}
			o["setParameter."+parameter] = value
			return nil
		}, nil
	case "replSet", "keyFile", "shardsvr", "configsvr", "fork":
		return false, nil, usageError("--" + name + " is not supported: this server is a standalone in the foreground")
	}
	for _, k := range knownOptions {
		if slices.Contains(k.names, name) {
			return k.kind != boolean, func(v string) error {
				if k.kind == boolean {
					v = "true"
				}
				return o.set(k, v, "Error parsing command line: the argument ('"+v+"') for option '--"+name+
					"' is invalid")
			}, nil
		}
	}
	return false, nil, usageError("Error parsing command line: unrecognised option '--" + name + "'")
}

func (o settings) set(k option, v, complaint string) error {
	if k.kind == number {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return usageError(complaint)
		}
	}
	o[k.path] = v
	return nil
}

// readConfig reads a configuration file. What is set already stays.
func (o settings) readConfig(env *kit.Env, file string) error {
	data, err := env.ReadFile(file)
	if err != nil {
		return usageError(fmt.Sprintf("Error opening config file: %s (%v)", file, err))
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return usageError(fmt.Sprintf("Error parsing YAML config file: %v", err))
	}
	flat := map[string]any{}
	flatten("", tree, flat)
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		if err := o.configured(path, flat[path]); err != nil {
			return err
		}
	}
	return nil
}

func (o settings) configured(path string, value any) error {
	v := strings.TrimSpace(fmt.Sprint(value))
	if value == nil {
		v = ""
	}
	if strings.HasPrefix(path, "setParameter.") {
		o[path] = v
		return nil
	}
	canonical := strings.Replace(path, "net.ssl.", "net.tls.", 1)
	canonical = strings.Replace(canonical, "PEMKeyFile", "certificateKeyFile", 1)
	for _, k := range knownOptions {
		if k.path == canonical {
			if _, ok := o[k.path]; ok || v == "" {
				return nil
			}
			return o.set(k, v, "Error parsing option \""+path+"\" as int: bad numeric value: "+v)
		}
	}
	if strings.HasPrefix(path, "replication.") || strings.HasPrefix(path, "sharding.") {
		return usageError(path + " is not supported: this server is a standalone")
	}
	return usageError("Unrecognized option: " + path)
}

func flatten(prefix string, tree map[string]any, flat map[string]any) {
	for name, v := range tree {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+name+".", sub, flat)
			continue
		}
		flat[prefix+name] = v
	}
}

// check refuses what does not go together.
func (o settings) check() error {
	mode := strings.Replace(o["net.tls.mode"], "SSL", "TLS", 1)
	if mode != "" {
		o["net.tls.mode"] = mode
	}
	switch mode {
	case "", "disabled":
	case "allowTLS", "preferTLS", "requireTLS":
		if o["net.tls.certificateKeyFile"] == "" {
			return usageError("BadValue: need tlsCertificateKeyFile or certificateSelector when TLS is enabled")
		}
	default:
		return usageError("BadValue: unsupported value for tlsMode " + mode)
	}
	switch a := o["security.authorization"]; a {
	case "", "enabled", "disabled":
	default:
		return usageError("security.authorization must be either \"enabled\" or \"disabled\"")
	}
	if port, err := strconv.Atoi(o.text("net.port", "27017")); err != nil || port < 1 || port > 65535 {
		return usageError("Invalid port: " + o["net.port"])
	}
	return nil
}

// doc is the options as logs and getCmdLineOpts show them.
func (o settings) doc() bson.D {
	var d bson.D
	for _, path := range slices.Sorted(maps.Keys(o)) {
		var v any = o[path]
		for _, k := range knownOptions {
			if k.path != path {
				continue
			}
			switch k.kind {
			case boolean:
				v = o[path] == "true"
			case number:
				if n, err := strconv.Atoi(o[path]); err == nil {
					v = n
				} else if f, err := strconv.ParseFloat(o[path], 64); err == nil {
					v = f
				}
			}
		}
		d = nest(d, strings.Split(path, "."), v)
	}
	return d
}

func nest(d bson.D, path []string, v any) bson.D {
	if len(path) == 1 {
		return append(d, bson.E{Key: path[0], Value: v})
	}
	for i, e := range d {
		if inner, ok := e.Value.(bson.D); ok && e.Key == path[0] {
			d[i].Value = nest(inner, path[1:], v)
			return d
		}
	}
	return append(d, bson.E{Key: path[0], Value: nest(nil, path[1:], v)})
}
