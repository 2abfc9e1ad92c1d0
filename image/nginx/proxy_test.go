package nginx

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// backend adds a machine that serves HTTP on port 80.
func backend(t testing.TB, m *kittest.Machine, addr string, h http.Handler) *kittest.Machine {
	t.Helper()
	b := m.World.Machine("backend-"+addr, addr)
	b.Start(func(ctx context.Context, env *kit.Env) error {
		ln, err := env.Net.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h}
		context.AfterFunc(ctx, func() { srv.Close() })
		return kit.IgnoreClosed(srv.Serve(ln))
	}, "backend")
	b.WaitListen(":80")
	return b
}

// echo tells what it was asked.
func echo(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Server", "Backend/1")
		fmt.Fprintf(w, "%s %s %s host=%s real=%s fwd=%s body=%s", name, r.Method, r.RequestURI, r.Host, r.Header.Get("X-Real-IP"), r.Header.Get("X-Forwarded-For"), body)
	})
}

func TestProxy(t *testing.T) {
	m := pod(t)
	w := m.World
	backend(t, m, "10.244.0.3", echo("b"))
	w.Name("backend", "10.244.0.3")
	w.Name("late", "10.244.0.3")
	site(m, `
server {
    listen 80;
    location / { proxy_pass http://backend; }
    location /api/ {
        proxy_pass http://backend:80/v2/;
        proxy_set_header Host $host;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
    location /strip/ { rewrite ^/strip/(.*)$ /$1 break; proxy_pass http://backend; }
    location /var/ { set $up late; resolver 10.96.0.10; proxy_pass http://$up; }
    location /unresolved/ { set $up late; proxy_pass http://$up; }
}`)
	r := start(m)
	r.Await("start worker processes")
	tests := []struct{ path, want string }{
		{"/a%20b?x=1", "b GET /a%20b?x=1 host=backend real= fwd= body="},
		{"/api/users?q=2", "b GET /v2/users?q=2 host=localhost real=127.0.0.1 fwd=10.1.1.1, 127.0.0.1 body="},
		{"/strip/x/y?z", "b GET /x/y?z host=backend real= fwd=10.1.1.1 body="},
		{"/var/x", "b GET /var/x host=late real= fwd=10.1.1.1 body="},
	}
	for _, tt := range tests {
		headers := []string{"X-Forwarded-For: 10.1.1.1"}
		if tt.path[1] == 'a' && tt.path[2] == '%' {
			headers = nil
		}
		a := get(t, m, "http://localhost"+tt.path, headers...)
		if a.Code != 200 || a.Body != tt.want || a.Header.Get("Server") != "nginx/1.27.5" {
			t.Errorf("%s: %d %v\n%s", tt.path, a.Code, a.Header, a.Body)
		}
	}
	if a := kittest.Ask(t, m, "PUT", "http://localhost/x", "data"); a.Body != "b PUT /x host=backend real= fwd= body=data" {
		t.Error(a.Body)
	}
	// A path without the slash leads to the one with it.
	if a := get(t, m, "http://localhost/api?q=1"); a.Code != 301 || a.Header.Get("Location") != "http://localhost/api/?q=1" {
		t.Errorf("%d %v", a.Code, a.Header)
	}
	if a := get(t, m, "http://localhost/unresolved/"); a.Code != 502 {
		t.Errorf("%d", a.Code)
	}
	r.Await("no resolver defined to resolve late, client: 127.0.0.1")
}

func TestProxyFailures(t *testing.T) {
	m := pod(t)
	hang := make(chan struct{})
	defer close(hang)
	backend(t, m, "10.244.0.3", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case "/crash":
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "teapot")
		}
	}))
	site(m, `
log_format up "$status $upstream_addr $upstream_status";
server {
    listen 80;
    access_log /dev/stdout up;
    error_page 500 502 503 504 /50x.html;
    location = /50x.html { root /usr/share/nginx/html; }
    location / { proxy_pass http://10.244.0.3; proxy_read_timeout 50ms; }
    location /refused { proxy_pass http://10.244.0.3:81; }
    location /cut { proxy_intercept_errors on; error_page 418 = @tea; proxy_pass http://10.244.0.3; }
    location @tea { return 200 "no tea"; }
}`)
	r := start(m)
	r.Await("start worker processes")
	tests := []struct {
		path string
		code int
		body string
		log  string
	}{
		{"/", 418, "teapot", ""},
		{"/cut", 200, "no tea", ""},
		{"/refused", 502, "This page cannot be shown now.", `connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, server: , request: "GET /refused HTTP/1.1", upstream: "http://10.244.0.3:81/refused", host: "localhost"`},
		{"/hang", 504, "This page cannot be shown now.", `upstream timed out (110: Connection timed out) while reading response header from upstream, client: 127.0.0.1, server: , request: "GET /hang HTTP/1.1", upstream: "http://10.244.0.3:80/hang"`},
		{"/crash", 502, "This page cannot be shown now.", "upstream prematurely closed connection while reading response header from upstream"},
	}
	for _, tt := range tests {
		a := get(t, m, "http://localhost"+tt.path)
		if a.Code != tt.code || !strings.Contains(a.Body, tt.body) {
			t.Errorf("%s: %d %s", tt.path, a.Code, a.Body)
		}
		r.Await(tt.log)
	}
	r.Await("502 10.244.0.3:81 502\n")
}

func TestUpstream(t *testing.T) {
	m := pod(t)
	for i, addr := range []string{"10.244.0.3", "10.244.0.4", "10.244.0.5"} {
		backend(t, m, addr, echo(string(rune('a'+i))))
	}
	site(m, `
upstream app { server 10.244.0.3 weight=2; server 10.244.0.4:80; server 10.244.0.5 backup; keepalive 8; }
upstream broken { server 10.244.0.3:81 max_fails=1; server 10.244.0.4; }
upstream dead { server 10.244.0.3:81; server 10.244.0.4:81; }
server {
    listen 80;
    location /app { proxy_pass http://app; }
    location /broken { proxy_pass http://broken; }
    location /dead { proxy_pass http://dead; }
}`)
	r := start(m)
	r.Await("start worker processes")
	count := map[byte]int{}
	for range 9 {
		count[get(t, m, "http://localhost/app").Body[0]]++
	}
	if count['a'] != 6 || count['b'] != 3 || count['c'] != 0 {
		t.Errorf("shares %v", count)
	}
	for range 4 {
		if a := get(t, m, "http://localhost/broken"); a.Code != 200 || a.Body[0] != 'b' {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
	// It is not tried again at once.
	if n := strings.Count(r.Stderr.String(), "connect() failed"); n != 1 {
		t.Errorf("%d attempts at the broken one", n)
	}
	for i := range 2 {
		if a := get(t, m, "http://localhost/dead"); a.Code != 502 {
			t.Errorf("%d: %d", i, a.Code)
		}
	}
	r.Await(`no live upstreams while connecting to upstream, client: 127.0.0.1, server: , request: "GET /dead HTTP/1.1", upstream: "http://dead/dead"`)
}

// A client that does not wait is in the log as 499.
func TestClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		backend(t, m, "10.244.0.3", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		site(m, `server { listen 80; location / { proxy_pass http://10.244.0.3; } }`)
		r := start(m)
		r.Await("start worker processes")
		c := m.Client()
		c.Timeout = time.Second
		if resp, err := c.Get("http://localhost/"); err == nil {
			resp.Body.Close()
			t.Error("it was answered")
		}
		r.Await(`"GET / HTTP/1.1" 499 0`)
	})
}

func TestRedirectionsOfTheUpstream(t *testing.T) {
	m := pod(t)
	backend(t, m, "10.244.0.3", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://10.244.0.3/v2/login", http.StatusFound)
	}))
	site(m, `
server {
    listen 80;
    location /api/ { proxy_pass http://10.244.0.3/v2/; }
    location /raw/ { proxy_pass http://10.244.0.3/v2/; proxy_redirect off; }
    location /own/ { proxy_pass http://10.244.0.3; proxy_redirect http://10.244.0.3/ https://$host/; }
}`)
	start(m).Await("start worker processes")
	for path, want := range map[string]string{"/api/": "/api/login", "/raw/": "http://10.244.0.3/v2/login", "/own/": "https://localhost/v2/login"} {
		if a := get(t, m, "http://localhost"+path); a.Code != 302 || a.Header.Get("Location") != want {
			t.Errorf("%s: %d %v", path, a.Code, a.Header)
		}
	}
}

// A client may change the protocol only where the configuration passes that on.
func TestUpgrade(t *testing.T) {
	m := pod(t)
	backend(t, m, "10.244.0.3", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" {
			w.WriteHeader(http.StatusUpgradeRequired)
			return
		}
		w.Header().Set("Upgrade", "echo")
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		line, _ := rw.ReadString('\n')
		io.WriteString(c, line)
	}))
	site(m, `
server {
    listen 80;
    location /ws { proxy_pass http://10.244.0.3; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; }
    location /plain { proxy_pass http://10.244.0.3; }
}`)
	r := start(m)
	r.Await("start worker processes")
	for path, want := range map[string]string{"/ws": "HTTP/1.1 101 Switching Protocols", "/plain": "HTTP/1.1 426 Upgrade Required"} {
		c, err := m.Env().Net.DialContext(t.Context(), "tcp", "localhost:80")
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rd := bufio.NewReader(c)
		status, _ := rd.ReadString('\n')
		if status != want+"\r\n" {
			t.Errorf("%s: %q", path, status)
		}
		if path == "/ws" {
			for line := ""; line != "\r\n"; { // the rest of the header
				if line, err = rd.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			io.WriteString(c, "hello\n")
			if line, err := rd.ReadString('\n'); line != "hello\n" {
				t.Errorf("%q, %v", line, err)
			}
		}
		c.Close()
	}
	r.Await(`"GET /ws HTTP/1.1" 101`)
}
