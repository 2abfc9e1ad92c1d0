package nginx

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestLocations(t *testing.T) {
	m, _ := serve(t, `
server {
    listen 80;
    listen [::]:80;
    root /srv;
    default_type text/plain;
    add_header X-Site "main $scheme" always;

    location = / { return 200 "exact"; }
    location / { return 200 "prefix"; }
    location /images/ { return 200 "images"; }
    location ^~ /images/raw/ { return 200 "raw"; }
    location ~* \.(gif|jpg)$ { return 200 "picture $1"; }
    location ~ ^/users/(?<id>\d+)$ { return 200 "user $id of $1"; }
    location /files/ { }
    location /plain/ { alias /data/; autoindex on; }
    location /app/ { try_files $uri $uri/ /app/index.html; }
    location /code/ { try_files $uri =404; }
    location /named/ { try_files $uri @fallback; }
    location @fallback { return 203 "named fallback for $uri"; }
    location /old { return 301 /new; }
    location /away { return https://example.com$request_uri; }
    location /gone { return 410; }
    location /hidden { internal; return 200 "inside"; }
    location /show { error_page 404 =200 /hidden; return 404; }
    location /page { error_page 404 /errors/404.html; return 404; }
    location /errors/ { }
    location /v1/ { rewrite ^/v1/(.*)$ /users/$1 last; }
    location /set { set $color blue; return 200 "$color $arg_q $http_x_test $request_method"; }
    location /nginx_status { stub_status; }
    location /outer/ { location /outer/inner/ { return 200 "inner"; } return 200 "outer"; }
}`)
	m.Write("/srv/files/a.html", "<p>a")
	m.Write("/srv/files/b.unknown", "b")
	m.Write("/srv/files/sub/index.html", "index")
	m.Write("/srv/files/empty/x/y", "")
	m.Write("/data/one.txt", "1")
	m.Write("/srv/app/index.html", "app")
	m.Write("/srv/app/main.js", "js")
	m.Write("/srv/errors/404.html", "nothing here")
	tests := []struct {
		path string
		code int
		body string // part of it
	}{
		{"/", 200, "exact"},
		{"/x", 200, "prefix"},
		{"//x/../y", 200, "prefix"},
		{"/images/a", 200, "images"},
		{"/images/a.GIF", 200, "picture GIF"},
		{"/images/raw/a.gif", 200, "raw"},
		{"/users/42", 200, "user 42 of 42"},
		{"/files/a.html", 200, "<p>a"},
		{"/files/sub/", 200, "index"},
		{"/files/sub", 301, "http://localhost/files/sub/"},
		{"/files/empty/", 403, "<title>403 Forbidden</title>"},
		{"/files/none", 404, "<title>404 Not Found</title>"},
		{"/files/%2e%2e/%2e%2e/data/one.txt", 200, "prefix"},
		{"/plain/one.txt", 200, "1"},
		{"/plain/", 200, `<a href="one.txt">one.txt</a>`},
		{"/app/main.js", 200, "js"},
		{"/app/deep/link", 200, "app"},
		{"/code/x", 404, "404 Not Found"},
		{"/named/x", 203, "named fallback for /named/x"},
		{"/old", 301, "http://localhost/new"},
		{"/away?a=b", 302, "https://example.com/away?a=b"},
		{"/gone", 410, "<h1>410 Gone</h1>"},
		{"/hidden", 404, "404 Not Found"},
		{"/show", 200, "inside"},
		{"/page", 404, "nothing here"},
		{"/v1/7", 200, "user 7"},
		{"/set?q=1", 200, "blue 1 tested GET"},
		{"/nginx_status", 200, "server accepts handled requests\n "},
		{"/outer/x", 200, "outer"},
	}
	for _, tt := range tests {
		a := get(t, m, "http://localhost"+tt.path, "X-Test: tested")
		body := a.Body
		if location := a.Header.Get("Location"); location != "" {
			body = location
		}
		if a.Code != tt.code || !strings.Contains(body, tt.body) || a.Header.Get("X-Site") != "main http" {
			t.Errorf("%s: %d, want %d %q, %v\n%s", tt.path, a.Code, tt.code, tt.body, a.Header, body)
		}
	}
	if a := kittest.Ask(t, m, "POST", "http://localhost/files/a.html", "x"); a.Code != 405 || !strings.Contains(a.Body, "405 Not Allowed") {
		t.Errorf("POST: %d %s", a.Code, a.Body)
	}
	if a := kittest.Ask(t, m, "HEAD", "http://localhost/files/a.html", ""); a.Code != 200 || a.Header.Get("Content-Length") != "4" {
		t.Errorf("HEAD: %d %v", a.Code, a.Header)
	}
}

func TestFileHeaders(t *testing.T) {
	m, _ := serve(t, "server { listen 80; root /srv; charset utf-8; location /long/ { expires 1h; } }")
	m.Write("/srv/a.html", "0123456789")
	m.Write("/srv/long/b.json", "{}")
	a := get(t, m, "http://localhost/a.html")
	if !regexp.MustCompile(`^"[0-9a-f]+-a"$`).MatchString(a.Header.Get("ETag")) || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%v", a.Header)
	}
	if b := get(t, m, "http://localhost/a.html", "If-None-Match: "+a.Header.Get("ETag")); b.Code != 304 {
		t.Errorf("same ETag: %d", b.Code)
	}
	if b := get(t, m, "http://localhost/a.html", "Range: bytes=2-4"); b.Code != 206 || b.Body != "234" {
		t.Errorf("range: %d %s", b.Code, b.Body)
	}
	if b := get(t, m, "http://localhost/long/b.json"); b.Header.Get("Cache-Control") != "max-age=3600" || b.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", b.Header)
	}
}

func TestVirtualHosts(t *testing.T) {
	m, _ := serve(t, `
server { listen 80; server_name a.example.com; return 200 a; }
server { listen 80; server_name *.example.com; return 200 wild; }
server { listen 80 default_server; server_name _; return 200 default; }
server { listen 80; server_name www.*; return 200 www; }
server { listen 80; server_name ~^api\d+\.; return 200 regexp; }
server { listen 8080; server_name a.example.com; return 200 "port $server_port"; server_tokens off; }
`)
	for host, want := range map[string]string{
		"a.example.com": "a", "A.EXAMPLE.com:80": "a", "b.example.com": "wild", "www.other.org": "www", "api7.other.org": "regexp", "other.org": "default",
	} {
		if a := get(t, m, "http://localhost/", "Host: "+host); a.Body != want {
			t.Errorf("%s: %s", host, a.Body)
		}
	}
	a := get(t, m, "http://localhost:8080/")
	if a.Body != "port 8080" || a.Header.Get("Server") != "nginx" {
		t.Errorf("%s %v", a.Body, a.Header)
	}
}

func TestLogs(t *testing.T) {
	m, r := serve(t, `
log_format short "$status $request_uri $bytes_sent";
server {
    listen 80;
    server_name web.example.com;
    root /srv;
    location /quiet { access_log off; return 200 "x"; }
    location /file { access_log /var/log/own.log short; return 200 "abc"; }
    location /silent { error_log /dev/null; }
}`)
	get(t, m, "http://10.244.0.2/none?q=\"1\"", "Referer: http://ref", "User-Agent: curl/8")
	r.Await("client:")
	access := regexp.MustCompile(`(?m)^10\.244\.0\.2 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /none\?q=\\x221\\x22 HTTP/1\.1" 404 153 "http://ref" "curl/8" "-"$`)
	failure := regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[error\] 1#1: \*\d+ open\(\) "/srv/none" failed \(2: No such file or directory\), client: 10\.244\.0\.2, server: web\.example\.com, request: "GET /none\?q=.+ HTTP/1\.1", host: "10\.244\.0\.2", referrer: "http://ref"$`)
	if !access.MatchString(r.Stdout.String()) || !failure.MatchString(r.Stderr.String()) {
		t.Errorf("stdout: %s\nstderr: %s", r.Stdout, r.Stderr)
	}
	before := len(r.Stdout.String())
	get(t, m, "http://localhost/quiet")
	get(t, m, "http://localhost/file")
	if len(r.Stdout.String()) != before || m.Read("/var/log/own.log") != "200 /file 3\n" {
		t.Errorf("%s %q", r.Stdout, m.Read("/var/log/own.log"))
	}
	// After rotation the log begins anew.
	if err := m.Env().FS.Rename("/var/log/own.log", "/var/log/own.log.1"); err != nil {
		t.Fatal(err)
	}
	r.Signal(syscall.SIGUSR1)
	r.Await("reopening logs")
	for range 100 {
		if _, err := m.Env().FS.Stat("/var/log/own.log"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	get(t, m, "http://localhost/file")
	if diff := cmp.Diff("200 /file 3\n", m.Read("/var/log/own.log")); diff != "" {
		t.Error(diff)
	}
}

func TestReload(t *testing.T) {
	m, r := serve(t, `server { listen 80; return 200 "one"; }`)
	if a := get(t, m, "http://localhost/"); a.Body != "one" {
		t.Fatal(a.Body)
	}
	site(m, `server { listen 80; return 200 "two"; } server { listen 81; return 200 "new"; }`)
	if code := m.Start(Main, "nginx", "-s", "reload").Wait(); code != 0 {
		t.Errorf("nginx -s reload: exit %d", code)
	}
	m.WaitListen(":81")
	if a := get(t, m, "http://localhost/"); a.Body != "two" {
		t.Error(a.Body)
	}
	// A mistake leaves everything as it was.
	site(m, `server { listen 80 }`)
	r.Signal(syscall.SIGHUP)
	r.Await(`[emerg] 1#1: unexpected "}" in /etc/nginx/conf.d/default.conf:1`)
	if a := get(t, m, "http://localhost/"); a.Body != "two" {
		t.Error(a.Body)
	}
	// What is not listened on any more is closed.
	site(m, `server { listen 81; return 200 "three"; }`)
	r.Signal(syscall.SIGHUP)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if a := get(t, m, "http://localhost:81/"); a.Body == "three" {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(a.Body)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c, err := m.Env().Net.DialContext(t.Context(), "tcp", "localhost:80")
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Fatal("port 80 is still open")
		}
	}
}

// SIGQUIT lets requests finish.
func TestGracefulStop(t *testing.T) {
	m, r := serve(t, `server { listen 80; location / { proxy_pass http://10.244.0.3:80; } }`)
	asked, release := make(chan struct{}), make(chan struct{})
	backend(t, m, "10.244.0.3", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
		io.WriteString(w, "slow")
	}))
	done := make(chan kittest.Answer)
	go func() { done <- get(t, m, "http://localhost/") }()
	<-asked
	r.Signal(syscall.SIGQUIT)
	r.Await("signal 3 (SIGQUIT) received, shutting down")
	close(release)
	if a := <-done; a.Code != 200 || a.Body != "slow" {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if _, err := m.Env().FS.Stat("/run/nginx.pid"); err == nil {
		t.Error("the pid file is still there")
	}
}

func TestTLS(t *testing.T) {
	m := pod(t)
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
	m.Write("/tls/tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	m.Write("/tls/tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	site(m, `server { listen 443 ssl; http2 on; ssl_certificate /tls/tls.crt; ssl_certificate_key /tls/tls.key; return 200 "$scheme $server_protocol"; }`)
	start(m).Await("start worker processes")
	c := m.Client()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	resp, err := c.Get("https://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "https HTTP/2.0" {
		t.Errorf("%s", body)
	}
}

func TestClosesWithoutAnAnswer(t *testing.T) {
	m, r := serve(t, `server { listen 80; return 444; }`)
	if resp, err := m.Client().Get("http://localhost/"); err == nil {
		resp.Body.Close()
		t.Errorf("answered %d", resp.StatusCode)
	}
	r.Await(`"GET / HTTP/1.1" 444 0`)
}

func TestBodyLimit(t *testing.T) {
	m, r := serve(t, `server { listen 80; client_max_body_size 1k; location / { proxy_pass http://10.244.0.3; } }`)
	backend(t, m, "10.244.0.3", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		w.Write([]byte{byte('0' + n%10)})
	}))
	if a := kittest.Ask(t, m, "POST", "http://localhost/", strings.Repeat("x", 1023)); a.Code != 200 || a.Body != "3" {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if a := kittest.Ask(t, m, "POST", "http://localhost/", strings.Repeat("x", 1025)); a.Code != 413 || !strings.Contains(a.Body, "413 Request Entity Too Large") {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	r.Await("client intended to send too large body: 1025 bytes")
}
