package page

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

// Prefix is where the pages are.
const Prefix = "/view/"

// contentPolicy is what a browser may do for a page: run its script, and load what is of this server.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Options are what a site shows, and to whom.
type Options struct {
	// Dir has the records, in it and below. It need not be there yet.
	Dir string
	// Cache is where the index of the records is kept; see [index.Options].
	Cache string
	// Library has the problems and applications. Without one there are no pages about them.
	Library *problem.Library
	// Token opens the pages as well as the key does, if it is set.
	Token string
	// Cluster is one that is up, with an application in it. Without one there is no page about it.
	Cluster *Cluster
}

// Site is the pages. It is safe for concurrent use.
type Site struct {
	Options
	door  *door
	mux   *http.ServeMux
	shelf shelf
	read  readRuns
	kept  readTelemetry
	state readState // of the cluster

	through *through // nil without a cluster

	sessions Sessions // what people work on; nil where there is nothing but records
	games    games

	ctx   context.Context // of what goes on behind requests
	close context.CancelFunc
	once  sync.Once
}

// New returns a site.
func New(o Options) *Site {
	s := &Site{Options: o, door: newDoor(o.Token), mux: http.NewServeMux()}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.shelf = shelf{dir: o.Dir, cache: o.Cache, now: time.Now}
	for pattern, h := range s.routes() {
		s.mux.Handle(pattern, s.door.guard(h))
	}
	if o.Cluster != nil {
		s.through = newThrough(o.Cluster)
		s.mux.Handle("GET "+throughPath+"{pass}/{to}/{path...}", http.HandlerFunc(s.through.serve))
	}
	s.mux.Handle("GET "+Prefix+"static/{name}", http.HandlerFunc(serveStatic))
	s.mux.Handle("POST "+Prefix+"enter", http.HandlerFunc(s.door.enter))
	s.mux.Handle("/", http.RedirectHandler(Prefix, http.StatusSeeOther))
	return s
}

// Close ends the streams of runs that are under way, and leaves games to their sessions.
func (s *Site) Close() { s.once.Do(s.close) }

// Link is the path of the first page with the key in it, for who starts the server.
func (s *Site) Link() string {
	if s.Cluster != nil {
		return clusterPath + "?key=" + s.door.key
	}
	return Prefix + "?key=" + s.door.key
}

// routes are the pages, each with its pattern.
func (s *Site) routes() map[string]handler {
	return map[string]handler{
		"GET " + Prefix + "{$}":                         s.listRuns,
		"GET " + Prefix + "runs/{id}":                   s.showRun,
		"GET " + Prefix + "runs/{id}/events":            s.follow,
		"GET " + Prefix + "runs/{id}/text/{seq}/{part}": s.showText,
		"GET " + Prefix + "compare":                     s.compare,
		"GET " + Prefix + "problems":                    s.listProblems,
		"GET " + Prefix + "problems/{id}":               s.showProblem,
		"GET " + clusterPath:                            s.showCluster,
		"GET " + clusterPath + "/metrics":               s.showMetrics,
		"GET " + clusterPath + "/logs":                  s.showLogs,
		"GET " + clusterPath + "/traces":                s.showTraces,
		"GET " + clusterPath + "/own/{to}":              s.showOwn,
		"GET " + Prefix + "play":                        s.play,
		"POST " + Prefix + "play":                       s.beginGame,
		"GET " + Prefix + "play/{id}":                   s.showGame,
		"POST " + Prefix + "play/{id}":                  s.actInGame,
		"POST " + Prefix + "play/{id}/interrupt":        s.interruptGame,
		"GET " + Prefix + "play/{id}/terminal":          s.openTerminal,
		"GET " + Prefix + "play/{id}/text/{step}":       s.textOfStep,
		"GET " + Prefix:                                 missing,
	}
}

// ServeHTTP answers with a page.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), menuKey{}, s.menu())))
}

// menuKey is where a request has what its page leads to.
type menuKey struct{}

// menu is what every page leads to.
func (s *Site) menu() []place {
	if s.Cluster == nil {
		return menu
	}
	return append([]place{{"cluster", "Cluster", clusterPath}}, menu...)
}
