package redis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const cliUsage = `redis-cli VERSION

Usage: redis-cli [OPTIONS] [cmd [arg [arg ...]]]
  -h <hostname>      Server hostname (default: 127.0.0.1).
  -p <port>          Server port (default: 6379).
  -a <password>      Password to use when connecting to the server.
                     You can also use the REDISCLI_AUTH environment
                     variable to pass this password more safely
  --user <username>  Used to send ACL style 'AUTH username pass'. Needs -a.
  -u <uri>           Server URI.
  -r <repeat>        Execute specified command N times.
  -i <interval>      Waits <interval> seconds per command when using -r.
  -n <db>            Database number.
  -3                 Start session in RESP3 protocol mode.
  -x                 Read last argument from STDIN.
  --raw              Use raw formatting for replies (default when STDOUT is
                     not a tty).
  --no-raw           Force formatted output even when STDOUT is not a tty.
  --csv              Output in CSV format.
  --scan             List all keys using the SCAN command.
  --pattern <pat>    Keys pattern when using the --scan option (default: *).
  --no-auth-warning  Don't show warning message when using password on command
                     line interface.
  --help             Output this help and exit.
  --version          Output version and exit.
`

func (c *cli) parse(args []string) (done bool, err error) {
	warn := true
	for len(args) > 0 {
		arg := args[0]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			break
		}
		args = args[1:]
		value := func() string {
			if len(args) == 0 {
				err = saidf("Unrecognized option or bad number of args for: '%s'", arg)
				return ""
			}
			v := args[0]
			args = args[1:]
			return v
		}
		number := func() int {
			v := value()
			n, bad := strconv.Atoi(v)
			if err == nil && bad != nil {
				err = saidf("Invalid number for %s: '%s'", arg, v)
			}
			return n
		}
		switch arg {
		case "-h":
			c.host = value()
		case "-p":
			c.port = value()
		case "-a", "--pass":
			c.password, c.noWarn = value(), false
		case "--user":
			c.user = value()
		case "-u":
			err = c.uri(value())
		case "-n":
			c.db = number()
		case "-r":
			c.repeat = number()
		case "-i":
			seconds, bad := strconv.ParseFloat(value(), 64)
			if err == nil && bad != nil {
				err = said("Invalid interval")
			}
			c.interval = time.Duration(seconds * float64(time.Second))
		case "-x":
			c.stdin = true
		case "-3":
			c.resp3 = true
		case "-c", "--no-raw-errors", "-e":
		case "--raw":
			c.format = 'r'
		case "--no-raw":
			c.format = 's'
		case "--csv":
			c.format = 'c'
		case "--scan":
			c.scan = true
		case "--pattern":
			c.pattern = value()
		case "--no-auth-warning":
			warn = false
		case "-v", "--version":
			fmt.Fprintln(c.env.Stdout, c.brand.name+"-cli "+c.brand.version)
			return true, nil
		case "--help":
			fmt.Fprint(c.env.Stdout,
				strings.NewReplacer("redis-cli", c.brand.name+"-cli", "VERSION", c.brand.version).Replace(cliUsage))
			return true, nil
		default:
			err = saidf("Unrecognized option or bad number of args for: '%s'", arg)
		}
		if err != nil {
			return false, err
		}
	}
	if !warn {
		c.noWarn = true
	}
	c.command = args
	return false, nil
}

// uri is redis://user:password@host:port/db.
func (c *cli) uri(s string) error {
	rest, ok := strings.CutPrefix(s, "redis://")
	if !ok {
		return said("Invalid URI scheme")
	}
	if auth, after, found := strings.Cut(rest, "@"); found {
		rest = after
		user, password, both := strings.Cut(auth, ":")
		if both {
			c.user, c.password = user, password
		} else {
			c.password = auth
		}
		c.noWarn = false
	}
	address, db, _ := strings.Cut(rest, "/")
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil {
			return said("Invalid database number")
		}
		c.db = n
	}
	host, port, found := strings.Cut(address, ":")
	if host != "" {
		c.host = host
	}
	if found {
		c.port = port
	}
	return nil
}
