package cli

import (
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/server"
	pages "github.com/aiopslab/aiopslab/server/page"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// labPort is where 'up' has the lab's own page: beside those of 'serve' and 'view'.
	labPort = 1820
	// labTitle is what it is called in the list of what can be opened.
	labTitle = "All of it"
	// maxShown is how many bytes of an answer of a program in the cluster the page reads.
	maxShown = 32 << 20
)

// watch has the lab's own page, if it is in the list, show the place. Load may be nil. Stop ends it.
func watch(s *State, list []*page, p *place, load session.Load) (stop func(), err error) {
	for _, one := range list {
		if one.host != "" {
			continue
		}
		site, err := p.site(s, load)
		if err != nil {
			return nil, err
		}
		one.site, one.path = server.ProtectPages(site, true), site.Link()
		return site.Close, nil
	}
	return func() {}, nil
}

// site is the pages about a place, and about the runs in the default directory.
func (p *place) site(s *State, load session.Load) (*pages.Site, error) {
	token, err := envToken(s)
	if err != nil {
		return nil, err
	}
	library, err := s.library()
	if err != nil {
		return nil, err
	}
	telemetry, err := observe.New(p.cloud.RESTConfig(), p.cloud.Dial, p.tenancy)
	if err != nil {
		return nil, err
	}
	telemetry.MaxAnswer = maxShown
	config := p.cloud.RESTConfig()
	config.QPS = -1 // Whoever looks is a person.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &pages.Cluster{App: p.app, Client: client, Telemetry: telemetry, Dial: p.cloud.Dial}
	if load != nil {
		c.Users = load.Snapshot
	}
	for _, there := range pagesOf(p.app, p.tenancy) {
		if there.name != "" {
			c.Own = append(c.Own, pages.Own{Name: there.name, Title: there.title, Host: there.host})
		}
	}
	return pages.New(pages.Options{
		Dir: defaultResults, Cache: indexCache(), Library: library, Token: token, Cluster: c,
	}), nil
}
