package social

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is SocialNetwork.
func App() *app.App {
	part := func(name string, calls ...string) app.Service {
		return app.Service{Name: name, Kind: "service", Calls: calls}
	}
	services := []app.Service{
		part("nginx-thrift", "compose-post-service", "home-timeline-service", "user-timeline-service", "user-service",
			"social-graph-service"),
		part("media-frontend", "media-mongodb"),
		part("compose-post-service", "unique-id-service", "text-service", "user-service", "media-service",
			"post-storage-service", "user-timeline-service", "home-timeline-service"),
		part("text-service", "url-shorten-service", "user-mention-service"),
		part("url-shorten-service", "url-shorten-mongodb", "url-shorten-memcached"),
		part("user-mention-service", "user-mongodb", "user-memcached"),
		part("user-service", "user-mongodb", "user-memcached", "social-graph-service"),
		part("social-graph-service", "social-graph-mongodb", "social-graph-redis", "user-service"),
		part("post-storage-service", "post-storage-mongodb", "post-storage-memcached"),
		part("user-timeline-service", "user-timeline-mongodb", "user-timeline-redis", "post-storage-service"),
		part("home-timeline-service", "home-timeline-redis", "post-storage-service", "social-graph-service"),
		part("media-service"),
		part("unique-id-service"),
	}
	for _, s := range []struct {
		kind  string
		names []string
	}{
		{"mongodb", []string{
			"url-shorten-mongodb", "user-mongodb", "media-mongodb", "post-storage-mongodb",
			"social-graph-mongodb", "user-timeline-mongodb",
		}},
		{"redis", []string{"home-timeline-redis", "social-graph-redis", "user-timeline-redis"}},
		{"memcached", []string{"user-memcached", "url-shorten-memcached", "media-memcached", "post-storage-memcached"}},
		{"infrastructure", []string{"jaeger"}},
	} {
		for _, name := range s.names {
			services = append(services, app.Service{Name: name, Kind: s.kind})
		}
	}
	for i := range services {
		services[i].Ask = questions[services[i].Name]
		if services[i].Name == "jaeger" {
			services[i].Port = 16686
		}
	}
	return &app.App{
		Name: "social-network", Title: "Social Network", Namespace: "test-social-network",
		Description: "A site on which people write posts and read those of the people they follow, made of " +
			"services that call " +
			"each other over Thrift, and keep their data in MongoDB, Redis and memcached.",
		Operations: []string{
			"Write a post, which can mention people and carry links and media",
			"Read the posts of the people one follows",
			"Read the posts of one person",
			"Register, and log in",
			"Follow and unfollow people",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "nginx-thrift", Port: 8080},
		Label:     "app",
		Services:  services,
		Mix:       "social-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/wrk2-api/user/follow?user_name={words}&followee_name=username_1"},
	}
}
