package network

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// curlVersion is what curl says it is.
const curlVersion = "8.11.1"

// curlOptions are the options of curl that are known. Those that change nothing here are accepted.
const curlOptions = "a,append A:,user-agent b:,cookie c:,cookie-jar C:,continue-at d:,data,data-ascii data-raw: " +
	"data-binary: data-urlencode: json: D:,dump-header e:,referer f,fail fail-with-body F:,form " +
	"form-string: g,globoff G,get H:,header h,help i,include,show-headers I,head " +
	"j,junk-session-cookies J,remote-header-name k,insecure K:,config L,location location-trusted " +
	"m:,max-time M,manual n,netrc N,no-buffer o:,output O,remote-name output-dir: create-dirs " +
	"q,disable Q:,quote r:,range R,remote-time s,silent S,show-error t:,telnet-option T:,upload-file " +
	"u:,user U:,proxy-user v,verbose V,version w:,write-out x:,proxy X:,request y:,speed-time " +
	"Y:,speed-limit z:,time-cond Z,parallel 0,http1.0 http1.1 http2 http2-prior-knowledge http3 " +
	"1,tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 2,sslv2 3,sslv3 4,ipv4 6,ipv6 #,progress-bar " +
	"no-progress-meter cacert: capath: E:,cert cert-type: key: key-type: ciphers: connect-timeout: " +
	"connect-to: resolve: compressed digest basic anyauth negotiate ntlm interface: keepalive-time: " +
	"no-keepalive limit-rate: max-filesize: max-redirs: noproxy: oauth2-bearer: path-as-is post301 " +
	"post302 post303 proto: proto-default: proto-redir: remove-on-error request-target: retry: " +
	"retry-all-errors retry-connrefused retry-delay: retry-max-time: ssl-no-revoke ssl stderr: " +
	"tcp-nodelay tcp-fastopen tls-max: trace: trace-ascii: trace-time tr-encoding unix-socket: " +
	"abstract-unix-socket: url: no-alpn expect100-timeout: raw styled-output no-styled-output " +
	"no-sessionid ignore-content-length dns-servers: doh-url: happy-eyeballs-timeout-ms: http0.9 " +
	"url-query:"

// curlHelp is what curl --help prints.
const curlHelp = `Usage: curl [options...] <url>
 -d, --data <data>          HTTP POST data
 -f, --fail                 Fail fast with no output on HTTP errors
 -h, --help <category>      Get help for commands
 -o, --output <file>        Write to file instead of stdout
 -O, --remote-name          Write output to file named as remote file
 -i, --show-headers         Show response headers in output
 -s, --silent               Silent mode
 -T, --upload-file <file>   Transfer local FILE to destination
 -u, --user <user:password> Server user and password
 -A, --user-agent <name>    Send User-Agent <name> to server
 -v, --verbose              Make the operation more talkative
 -V, --version              Show version number and quit
`

var curl = tool.Tool{
	Name: "curl", Raw: true,
	Run: func(ctx context.Context, c *tool.Call) error {
		opts, operands, err := tool.ParseOptions(curlOptions, c.Args)
		if err != nil {
			return curlUsage(c, err)
		}
		c.Opts = opts
		switch {
		case opts.Has("V"):
			c.Out.Printf("curl %s (x86_64-pc-linux-gnu) libcurl/%s OpenSSL/3.3.2\nRelease-Date: 2024-12-11\n"+
				"Protocols: file http https\nFeatures: AsynchDNS IPv6 libz SSL\n", curlVersion, curlVersion)
			return nil
		case opts.Has("h"):
			c.Out.WriteString(curlHelp)
			return nil
		}
		urls := append(append([]string(nil), opts.All("url")...), operands...)
		if len(urls) == 0 {
			c.Note("curl: (2) no URL specified\ncurl: try 'curl --help' or 'curl --manual' for more information\n")
			return kit.Exit(2)
		}
		r := &curlRun{c: c, jar: newCookieJar()}
		if err := r.prepare(); err != nil {
			return r.failed(err)
		}
		code := 0
		for i, u := range urls {
			if err := r.transfer(ctx, u, i); err != nil {
				if e, ok := errors.AsType[*curlError](err); ok {
					code = e.code
					continue
				}
				return err
			}
		}
		if err := r.saveCookies(); err != nil {
			return r.failed(err)
		}
		return kit.Exit(code)
	},
}

// curlError is an error by curl's number.
type curlError struct {
	code int
	text string
}

func (e *curlError) Error() string { return fmt.Sprintf("(%d) %s", e.code, e.text) }

// curlUsage reports an option that curl does not know.
func curlUsage(c *tool.Call, err error) error {
	problem, name, _ := strings.Cut(err.Error(), ": ")
	dash := "--"
	if len([]rune(name)) == 1 {
		dash = "-"
	}
	what := "is unknown"
	switch {
	case strings.Contains(problem, "requires"):
		what = "requires parameter"
	case strings.Contains(problem, "ambiguous"):
		what = "is ambiguous"
	case strings.Contains(problem, "does not take"):
		what = "used '--no-' for option that doesn't take it"
	}
	c.Note("curl: option %s%s: %s\ncurl: try 'curl --help' or 'curl --manual' for more information\n", dash, name, what)
	return kit.Exit(2)
}

// curlRun is a curl under way.
type curlRun struct {
	c       *tool.Call
	jar     *cookieJar
	body    *uploadBody // of -d, -F and -T; nil if there is none
	verbose bool
}

// failed reports an error and returns the exit code of it.
func (r *curlRun) failed(err error) error {
	e, ok := errors.AsType[*curlError](err)
	if !ok {
		return err
	}
	if !r.c.Opts.Has("s") || r.c.Opts.Has("S") {
		r.c.Note("curl: %v\n", e)
	}
	return kit.Exit(e.code)
}

// prepare reads what all transfers share.
func (r *curlRun) prepare() (err error) {
	r.verbose = r.c.Opts.Has("v")
	if err := r.loadCookies(); err != nil {
		return err
	}
	r.body, err = r.collectBody()
	return err
}

// info prints a line of -v.
func (r *curlRun) info(format string, args ...any) {
	if r.verbose {
		r.c.Note("* "+format+"\n", args...)
	}
}

// traffic prints a header that was sent or received, for -v.
func (r *curlRun) traffic(mark, head string) {
	if !r.verbose {
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(head, "\r\n", "\n"), "\n"), "\n") {
		r.c.Note("%s %s\n", mark, line)
	}
}
