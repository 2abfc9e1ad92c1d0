package app

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/ask"
)

// question is what only a service can answer, in app.yaml: a page and what is in it, or the name of a
// gRPC service. Stores are asked in their own protocols, which their kind tells. Where nobody knows what a service
// answers, any page that is no error will do, or that it takes a connection: anybody else in its place would pass, too.
type question struct {
	HTTP   string `yaml:"http"`
	Answer string `yaml:"answer"` // a regular expression
	Any    bool   `yaml:"any"`    // the page is well if a kubelet's probe would take it
	GRPC   string `yaml:"grpc"`
	TCP    bool   `yaml:"tcp"`
}

func (q *question) question() ask.Question {
	switch {
	case q == nil:
		return nil
	case q.GRPC != "":
		return ask.GRPC(func(ctx context.Context, c grpc.ClientConnInterface) error {
			return ask.Serves(ctx, c, q.GRPC)
		})
	case q.TCP:
		return ask.Connects
	case q.Any:
		return ask.Page(q.HTTP, func(status int, _ []byte) error {
			if status < http.StatusOK || status >= http.StatusBadRequest {
				return ask.Wrong("%d %s", status, http.StatusText(status))
			}
			return nil
		})
	}
	answer := regexp.MustCompile(q.Answer) // It was checked.
	return ask.Page(q.HTTP, func(status int, body []byte) error {
		if status != http.StatusOK || !answer.Match(body) {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	})
}

// checkQuestion checks what a service is asked. One that others call, and that has no protocol of its
// own, must have a question: else anybody could answer in its place.
func (c *checker) checkQuestion(i int) {
	s := c.d.Services[i]
	path := []any{"services", i, "ask"}
	ports := c.ports(s.Name)
	if s.Port != 0 && !slices.Contains(ports, strconv.Itoa(s.Port)) {
		c.add([]any{"services", i, "port"}, "services: the Service %s has no port %d; it has %s", s.Name, s.Port,
			strings.Join(ports, ", "))
	}
	q := s.Ask
	switch {
	case q == nil:
		if s.Kind == "service" && len(ports) > 0 {
			c.add([]any{"services", i, "name"},
				"services: %s: ask is missing: what only it can answer, such as "+
					"{http: /, answer: a regular expression}", s.Name)
		}
		return
	case s.Kind != "service" && s.Kind != "infrastructure":
		c.add(path, "services: %s: leave out ask: a server of kind %s is asked in its own protocol", s.Name, s.Kind)
		return
	case q.ways() != 1:
		c.add(path, "services: %s: ask: want one of http, a path, grpc, the name of a service, and tcp: true", s.Name)
		return
	case q.HTTP == "":
		if q.Answer != "" || q.Any {
			c.add(append(path, "answer"), "services: %s: ask: answer and any are for http", s.Name)
		}
		return
	case !strings.HasPrefix(q.HTTP, "/"):
		c.add(append(path, "http"), "services: %s: ask: http %q: want a path, such as /", s.Name, q.HTTP)
	}
	if q.Any {
		if q.Answer != "" {
			c.add(append(path, "any"), "services: %s: ask: any and answer exclude each other", s.Name)
		}
		return
	}
	if re, err := regexp.Compile(q.Answer); err != nil {
		c.add(append(path, "answer"), "services: %s: ask: answer: %v", s.Name, err)
	} else if re.MatchString("") {
		c.add(append(path, "answer"), "services: %s: ask: answer %q takes an empty page; want a text that only "+
			"%s answers with", s.Name, q.Answer, s.Name)
	}
}

// ways is how many ways to ask are given.
func (q *question) ways() (n int) {
	for _, given := range []bool{q.HTTP != "", q.GRPC != "", q.TCP} {
		if given {
			n++
		}
	}
	return n
}
