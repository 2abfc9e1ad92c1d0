package nginx

import (
	"crypto/tls"
	"maps"
	"regexp"
	"slices"
	"time"
)

// config is a configuration that was read and understood.
type config struct {
	file      string
	pid       string
	daemon    bool
	errorLog  errorLog // of what concerns no request
	listens   []*listen
	upstreams map[string]*upstream
	formats   map[string]*text // of access logs, by name
	warnings  []string
}

// listen is an address that is listened on, and the servers that answer there.
type listen struct {
	addr    string // as the network takes it; the wildcard of either protocol is ":port"
	name    string // as messages name it
	port    string
	tls     bool
	http2   bool
	servers []*server
	first   *server // who answers if no name matches

	explicit bool // a configuration says who is first
}

// server is a virtual host.
type server struct {
	scope
	names       []serverName
	locations   locations
	steps       []step
	certificate *tls.Certificate
}

// name is what logs call a server.
func (s *server) name() string {
	if len(s.names) == 0 {
		return ""
	}
	return s.names[0].text
}

// serverName is one of the names a server answers to.
type serverName struct {
	text string
	re   *regexp.Regexp // of a name that starts with ~
}

// scope is what blocks inherit from those they stand in.
type scope struct {
	own map[string]bool // directives this very block has

	root, alias  *text
	index        []*text
	autoindex    bool
	defaultType  string
	types        map[string]string // by extension
	charset      string
	tokens       bool // the version is told
	accessLogs   []accessLog
	errorLog     errorLog
	errorPages   []errorPage
	headers      []header
	maxBody      int64 // 0 is no limit
	keepalive    time.Duration
	tryFiles     []*text // the last one is the fallback
	tryCode      int     // or a code is
	absolute     bool    // redirections name the host
	portInTarget bool    // and the port

	certFile, keyFile string

	proxyHeaders                       []header
	proxyConnect, proxyRead, proxySend time.Duration
	proxyRedirects                     []redirect
	proxyRedirectDefault, proxyNext    bool
	proxyIntercept                     bool
	hasResolver                        bool
}

// child returns a copy for a block inside.
func (s *scope) child() scope {
	c := *s
	c.own = map[string]bool{}
	c.alias, c.tryFiles, c.tryCode = nil, nil, 0 // These are not inherited.
	return c
}

// defaults are the values of what a configuration does not mention.
func defaults() scope {
	return scope{
		own:          map[string]bool{},
		defaultType:  "text/plain",
		types:        map[string]string{"html": "text/html", "gif": "image/gif", "jpg": "image/jpeg"},
		tokens:       true,
		maxBody:      1 << 20,
		keepalive:    75 * time.Second,
		absolute:     true,
		portInTarget: true,
		proxyConnect: 60 * time.Second,
		proxyRead:    60 * time.Second,
		proxySend:    60 * time.Second,

		proxyRedirectDefault: true,
		proxyNext:            true,
	}
}

// header is a header that is added or set.
type header struct {
	name   string
	value  *text
	always bool // even if the answer is an error
}

// redirect replaces the start of a Location header of an upstream's.
type redirect struct{ from, to *text }

// errorPage says what is shown instead of an error.
type errorPage struct {
	codes  []int
	target *text
	code   int // the status instead; 0 keeps it, -1 takes the target's
}

// matching says how a location's pattern is to be compared.
type matching int

const (
	matchPrefix    matching = iota
	matchExact              // =
	matchPreferred          // ^~, a prefix that needs no regular expression to confirm
	matchRegexp             // ~ and ~*
	matchNamed              // @
)

// location is what answers requests for some paths.
type location struct {
	scope
	match     matching
	pattern   string
	re        *regexp.Regexp
	locations locations
	steps     []step
	pass      *proxyPass
	status    bool // shows the server's counters
	internal  bool // only for internal redirections
}

// locations are the alternatives inside a block, in its order.
type locations []*location

// find returns the location for a path: an exact match, else the first regular expression that
// matches, unless the longest prefix does without, else the longest prefix. The captures are the
// regular expression's.
func (l locations) find(uri string) (loc *location, captures []string) {
	var best *location
	for _, c := range l {
		switch {
		case c.match == matchExact && c.pattern == uri:
			return c, nil
		case c.match != matchPrefix && c.match != matchPreferred:
		case len(uri) >= len(c.pattern) && uri[:len(c.pattern)] == c.pattern &&
			(best == nil || len(c.pattern) > len(best.pattern)):
			best = c
		}
	}
	if best != nil {
		// A block inside knows better.
		if inner, captures := best.locations.find(uri); inner != nil {
			return inner, captures
		}
		if best.match == matchPreferred {
			return best, nil
		}
	}
	for _, c := range l {
		if c.match != matchRegexp {
			continue
		}
		if m := c.re.FindStringSubmatch(uri); m != nil {
			if inner, captures := c.locations.find(uri); inner != nil {
				return inner, captures
			}
			return c, m
		}
	}
	return best, nil
}

// named returns the location with the given name, which starts with @.
func (l locations) named(name string) *location {
	if i := slices.IndexFunc(l, func(c *location) bool { return c.match == matchNamed && c.pattern == name }); i >= 0 {
		return l[i]
	}
	return nil
}

// addType notes what files with an extension are.
func (s *scope) addType(kind string, extensions ...string) {
	if !s.own["types"] {
		s.own["types"], s.types = true, map[string]string{}
	}
	s.types = maps.Clone(s.types)
	for _, e := range extensions {
		s.types[e] = kind
	}
}
