// Package app describes the applications that run on a cloud: what they are called, what they are
// made of and who calls whom. The applications themselves are below: app/hotel, app/social.
package app

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app/ask"
)

// App is an application: plain Kubernetes manifests, and what one must know of it to use it.
type App struct {
	Name        string // as users write it: "hotel-reservation"
	Title       string // as prompts call it: "Hotel Reservation"
	Namespace   string
	Description string
	Operations  []string // what its users can do
	Manifests   fs.FS    // *.yaml, without a namespace

	Frontend Endpoint // where requests go
	Label    string   // key of the pod label whose value is the service's name
	Services []Service
	Mix      string // name of the mix that its load is made of, unless another one of Mixes is asked for
	Mixes    fs.FS  // *.yaml, what its users do; see workload.Mix
	// Heard are requests to the frontend by which a user's words get into a log: paths with a query in which
	// {words} stands for them.
	Heard []string

	// Registry is the prefix of a registry that has its images, as "registry.example/lab"; none if they are where
	// their names say. The manifests have it already: see [App.From].
	Registry string

	// Archive is a zip of the directory that it was read from, for [Unpack]; nil if it is built in.
	Archive []byte
}

// Endpoint is a port of a Kubernetes Service.
type Endpoint struct {
	Service string
	Port    int
}

// Service is one deployment of an application.
type Service struct {
	Name  string
	Kind  string // "service", "mongodb", "redis", "memcached" or "infrastructure"
	Calls []string

	// Ask asks the server at an address something that only this service can answer. If it is nil, the service is
	// asked what every service of its Kind can answer; see package ask. Port is where to ask. By default it is the
	// first port of the Kubernetes Service that leads to a port which the container declares.
	Ask  ask.Question
	Port int

	// Secret is the name of the Secret with what clients of a store log in with, under username and password. Ask gets
	// it by [ask.LoginOf]. It is empty for services that nobody logs in to, or not so.
	Secret string

	// Elastic says that the application itself scales the service: to no pods while nobody needs it, and up again when
	// somebody does. So none is as good as some. It has no Kubernetes Service; Ask is asked at the frontend, which has
	// it started.
	Elastic bool

	// Worker says that nobody waits for what the service does: it gets its work from a queue or the like, no other
	// service calls it, and users come to another. So its pods may be replaced, and one be killed, while users are
	// served.
	Worker bool
}

// Embedded is a directory of files that are part of a program, for Manifests and Mixes. It panics if dir is no path.
func Embedded(files fs.FS, dir string) fs.FS {
	list, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return list
}

// In is the application in another namespace.
func (a *App) In(namespace string) *App {
	moved := *a
	moved.Namespace = namespace
	return &moved
}

// Host is the frontend's address inside the cluster.
func (a *App) Host() string {
	return fmt.Sprintf("%s.%s:%d", a.Frontend.Service, a.Namespace, a.Frontend.Port)
}

// Service returns a service by name.
func (a *App) Service(name string) (Service, bool) {
	i := slices.IndexFunc(a.Services, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{}, false
	}
	return a.Services[i], true
}

// Summary is what an agent is told of the application. Its labels are those of AIOpsLab, because agents look for
// the namespace behind them.
func (a *App) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Service Name: %s\nNamespace: %s\nDescription: %s\nSupported Operations:\n", a.Title, a.Namespace,
		a.Description)
	for _, op := range a.Operations {
		fmt.Fprintf(&b, "  - %s\n", op)
	}
	return b.String()
}
