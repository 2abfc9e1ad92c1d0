// Package nginx is the web server of that name as a [kit.Program], with the image that people write
// into manifests as "nginx".
//
// It really reads /etc/nginx/nginx.conf and what that includes, and serves accordingly: static
// files, redirections, try_files, error pages, reverse proxying to upstream groups, virtual hosts,
// TLS. What it knows is the table in directives.go. Anything else is an unknown directive, as it is
// to an nginx built without that module. A configuration that is wrong, an upstream host that does
// not exist, a directory that cannot be written: all of these end it in the original's words, since
// that is what operators know.
//
//	registry.Register(nginx.Image(tools))
//
// No built-in application runs nginx. It is the image people try first (docs/images.md), and what applications of
// users (--apps) put in front of their services. So it does what a static site and a reverse proxy need, and accepts,
// without effect, the directives that only tune a real one: configurations people have must load.
//
// One process does what the original's master and workers do. SIGHUP reloads, SIGUSR1 reopens logs,
// SIGQUIT stops gracefully, SIGTERM at once; "nginx -s" sends them.
//
// Reading goes in three steps: lex.go and parse.go make a tree of directives, directives.go checks
// and applies them to the types in config.go, request.go and the files it calls answer requests.
package nginx
