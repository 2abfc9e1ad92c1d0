package nginx

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// A wrong configuration ends the server in the words people search for.
func TestConfigurationErrors(t *testing.T) {
	const at = " in /etc/nginx/conf.d/default.conf:"
	tests := []struct{ name, conf, want string }{
		{"unknown directive", "server {\n  lisen 80;\n}", `unknown directive "lisen"` + at + "2"},
		{"missing semicolon", "server {\n  listen 80\n}\n", `unexpected "}"` + at + "3"},
		{"missing brace", "server {\n  listen 80;\n", `unexpected end of file, expecting "}"` + at + "3"},
		{"brace too many", "server { listen 80; }\n}\n", `unexpected "}"` + at + "2"},
		{"no end", "listen", `unexpected end of file, expecting ";" or "}"` + at + "1"},
		{"no closing quote", "server { listen \"80; }", `unexpected end of file, expecting ";" or "}"` + at + "1"},
		{"wrong place", "listen 80;", `"listen" directive is not allowed here` + at + "1"},
		{"no block", "server;", `directive "server" has no opening "{"` + at + "1"},
		{"block", "server { root { } }", `directive "root" is not terminated by ";"` + at + "1"},
		{"arguments", "server { root; }", `invalid number of arguments in "root" directive` + at + "1"},
		{"duplicate", "server { root /a; root /b; }", `"root" directive is duplicate` + at + "1"},
		{"port", "server { listen 80a; }", `host not found in "80a" of the "listen" directive` + at + "1"},
		{"port number", "server { listen 99999; }", `invalid port in "99999" of the "listen" directive` + at + "1"},
		{"option", "server { listen 80 fast; }", `invalid parameter "fast"` + at + "1"},
		{"two defaults", "server { listen 80 default_server; } server { listen 80 default_server; }", `a duplicate default server for 0.0.0.0:80` + at + "1"},
		{"flag", "server { autoindex yes; }", `invalid value "yes" in "autoindex" directive, it must be "on" or "off"` + at + "1"},
		{"variable", "server { return 200 $nonsense; }", `unknown "nonsense" variable` + at + "1"},
		{"regular expression", "server { location ~ ( { } }", `pcre2_compile() failed: error parsing regexp: missing closing ): ` + "`(`" + ` in "("` + at + "1"},
		{"location twice", "server { location /a { } location /a { } }", `duplicate location "/a"` + at + "1"},
		{"upstream host", "server {\n location / {\n proxy_pass http://backend:8080;\n } }", `host not found in upstream "backend"` + at + "3"},
		{"upstream server", "upstream u { server backend; } server { }", `host not found in upstream "backend"` + at + "1"},
		{"empty upstream", "upstream u { } server { }", `no servers are inside upstream` + at + "1"},
		{"scheme", "server { location / { proxy_pass backend; } }", `invalid URL prefix` + at + "1"},
		{"log format", "server { access_log /dev/stdout fancy; }", `unknown log format "fancy"` + at + "1"},
		{"log level", "server { error_log stderr loud; }", `invalid log level "loud"` + at + "1"},
		{"return code", "server { return ok; }", `invalid return code "ok"` + at + "1"},
		{"certificate", "server { listen 443 ssl; }", `no "ssl_certificate" is defined for the "listen ... ssl" directive` + at + "1"},
		{
			"certificate file", "server { listen 443 ssl; ssl_certificate /tls.crt; ssl_certificate_key /tls.key; }",
			`cannot load certificate "/tls.crt": BIO_new_file() failed (SSL: error:80000002:system library::No such file or directory:calling fopen(/tls.crt, r))`,
		},
		{"include", "include /none.conf;", `open() "/none.conf" failed (2: No such file or directory)` + at + "1"},
		{"file that includes itself", "include /etc/nginx/conf.d/*.conf;", `open() "/etc/nginx/conf.d/default.conf" failed (24: Too many open files)`},
		{"deep nesting", "server { " + strings.Repeat("location / { ", 300), "too many nested blocks" + at + "1"},
		{"log directory", "server { access_log /none/access.log; }", `open() "/none/access.log" failed (2: No such file or directory)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := pod(t)
			site(m, tt.conf)
			r := m.Start(Main, "nginx", "-g", "daemon off;")
			if code := r.Wait(); code != 1 {
				t.Errorf("exit %d", code)
			}
			// Once in the log, which is the standard error stream, and once for the terminal.
			if got := r.Stderr.String(); !strings.Contains(got, "[emerg] 1#1: "+tt.want+"\n") || !strings.HasSuffix(got, "nginx: [emerg] "+tt.want+"\n") {
				t.Errorf("want %s\n%s", tt.want, got)
			}
			r = m.Start(Main, "nginx", "-t")
			if code := r.Wait(); code != 1 || !strings.HasSuffix(r.Stderr.String(), "nginx: [emerg] "+tt.want+"\nnginx: configuration file /etc/nginx/nginx.conf test failed\n") {
				t.Errorf("-t: exit %d\n%s", code, r.Stderr)
			}
		})
	}
}

func TestNoConfiguration(t *testing.T) {
	m := pod(t)
	m.Write("/etc/nginx/nginx.conf", "")
	for file, want := range map[string]string{
		"/none":                 `open() "/none" failed (2: No such file or directory)`,
		"/etc/nginx/nginx.conf": `no "events" section in configuration`,
	} {
		r := m.Start(Main, "nginx", "-c", file)
		if code := r.Wait(); code != 1 || !strings.HasSuffix(r.Stderr.String(), "nginx: [emerg] "+want+"\n") {
			t.Errorf("exit %d\n%s", code, r.Stderr)
		}
	}
}

// The official image does not start as another user than root: its directories are root's.
func TestNotRoot(t *testing.T) {
	m := pod(t)
	m.User = kit.User{UID: 1000, GID: 1000}
	r := start(m)
	if code := r.Wait(); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		`nginx: [warn] the "user" directive makes sense only if the master process runs with super-user privileges, ignored in /etc/nginx/nginx.conf:2`,
		`nginx: [emerg] mkdir() "/var/cache/nginx/client_temp" failed (13: Permission denied)`,
	} {
		if !strings.Contains(r.Stderr.String(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, r.Stderr)
		}
	}
}

func TestReadOnlyRoot(t *testing.T) {
	m := pod(t)
	m.Namespace.SetReadOnly()
	r := start(m)
	if code := r.Wait(); code != 1 || !strings.HasSuffix(r.Stderr.String(), "nginx: [emerg] mkdir() \"/var/cache/nginx/client_temp\" failed (30: Read-only file system)\n") {
		t.Errorf("exit %d\n%s", code, r.Stderr)
	}
	// With volumes where it writes it is content.
	for _, dir := range []string{"/var/cache/nginx", "/run", "/var/log/nginx"} {
		if err := m.Namespace.Mount(dir, vfs.NewTree(vfs.Options{Type: "tmpfs"}), vfs.MountOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r = m.Start(Main, "nginx", "-g", "daemon off;")
	m.WaitListen(":80")
	get(t, m, "http://localhost/")
	// The volume hides the links to the standard streams, so these are files now.
	if log := m.Read("/var/log/nginx/access.log"); !strings.Contains(log, `"GET / HTTP/1.1" 200`) || r.Stdout.String() != "" {
		t.Errorf("%s %s", log, r.Stdout)
	}
}

func TestPortInUse(t *testing.T) {
	synctest.Test(t, testPortInUse)
}

func testPortInUse(t *testing.T) {
	m := pod(t)
	if _, err := m.Env().Net.Listen("tcp", ":80"); err != nil {
		t.Fatal(err)
	}
	r := start(m)
	if code := r.Wait(); code != 1 || strings.Count(r.Stderr.String(), "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)\n") != 5 || !strings.HasSuffix(r.Stderr.String(), "nginx: [emerg] still could not bind()\n") {
		t.Errorf("exit %d\n%s", code, r.Stderr)
	}
}

// Whatever somebody writes into a configuration, it is understood or refused.
func FuzzConfiguration(f *testing.F) {
	for _, conf := range []string{
		defaultConf, `upstream u { server 10.0.0.1 weight=2; } server { location ~ ^/(a|b)$ { proxy_pass http://u; } }`,
		`server { set $a "x${b}"; set $b 1; rewrite ^ /$1 last; return 301 "$scheme://$host"; try_files $uri =404; }`, "{", "}", `"`, `a${`, "include *;",
	} {
		f.Add(conf)
	}
	f.Fuzz(func(t *testing.T, conf string) {
		m := pod(t)
		site(m, conf)
		_, err := load(t.Context(), m.Env("nginx"), "/etc/nginx/nginx.conf", "daemon off;")
		if _, ok := err.(*confError); err != nil && !ok {
			t.Errorf("%T %v", err, err)
		}
	})
}
