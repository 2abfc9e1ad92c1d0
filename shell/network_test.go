package shell

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// lab is a container with servers around it.
type lab struct {
	*shelltest.Machine
	mu    sync.Mutex
	tries int
}

func newLab(t *testing.T) *lab {
	l := &lab{Machine: shelltest.New(t, Tools())}
	l.Dir = "/tmp"
	server := l.Net.Host("10.244.1.1")
	l.Net.Name("web", "10.244.1.1")
	l.Net.Name("nowhere", "10.244.9.9")
	l.Net.Name("void", "10.96.0.99") // a service address that nothing answers

	listen := func(addr string) net.Listener {
		ln, err := server.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	quiet := log.New(io.Discard, "", 0)
	plain := &http.Server{Handler: http.HandlerFunc(l.serve), ErrorLog: quiet}
	secure := &http.Server{Handler: http.HandlerFunc(l.serve), ErrorLog: quiet, TLSConfig: l.certificate(t)}
	go plain.Serve(listen(":80"))
	go secure.ServeTLS(listen(":443"), "", "")
	t.Cleanup(func() { plain.Close(); secure.Close() })

	// One server that closes at once, one that resets, one that never answers, one that stops short.
	raw := func(addr string, handle func(net.Conn)) {
		ln := listen(addr)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go handle(c)
			}
		}()
	}
	read := func(c net.Conn) { c.Read(make([]byte, 4096)) }
	raw(":81", func(c net.Conn) { read(c); c.Close() })
	raw(":82", func(c net.Conn) { // What was sent and not read resets the connection.
		c.Read(make([]byte, 1))
		c.Close()
	})
	raw(":83", func(c net.Conn) { io.Copy(io.Discard, c) })
	raw(":84", func(c net.Conn) {
		read(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		c.Close()
	})
	raw(":7", func(c net.Conn) { io.Copy(c, c); c.Close() })
	return l
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Date"] = nil
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/":
		io.WriteString(w, "hello\n")
	case "/echo":
		fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.RequestURI())
		for _, name := range []string{"Content-Type", "User-Agent", "Authorization", "X-Test", "Cookie", "Referer", "Accept", "Range"} {
			if v := r.Header.Get(name); v != "" {
				fmt.Fprintf(w, "%s: %s\n", name, v)
			}
		}
		fmt.Fprintf(w, "%s\n", body)
	case "/redirect":
		http.Redirect(w, r, "/", http.StatusFound)
	case "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case "/cookie":
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "abc"})
		http.Redirect(w, r, "/echo", http.StatusFound)
	case "/slow":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case "/flaky":
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.tries++; l.tries < 3 {
			w.WriteHeader(503)
			return
		}
		io.WriteString(w, "at last\n")
	case "/error":
		w.WriteHeader(500)
		io.WriteString(w, "broken\n")
	default:
		http.NotFound(w, r)
	}
}

// certificate makes a certificate for "web", signed by an authority that /etc/ca.pem holds.
func (l *lab) certificate(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "web"}, DNSNames: []string{"web"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l.Write("/etc/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leafDER}, PrivateKey: key}}}
}

var (
	milliseconds = regexp.MustCompile(`\d+ (ms|milliseconds)`)
	localPort    = regexp.MustCompile(`from \S+ port \d+`)
)

func (l *lab) try(t *testing.T, tests []toolTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.cmd, func(t *testing.T) {
			got := l.RunWith(tt.stdin, "sh", "-c", tt.cmd)
			got.Stderr = localPort.ReplaceAllString(milliseconds.ReplaceAllString(got.Stderr, "N $1"), "from here")
			want := shelltest.Result{Stdout: tt.out, Stderr: tt.err, Code: tt.code}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", tt.cmd, diff)
			}
		})
	}
}

func TestCurl(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	agent := "User-Agent: curl/8.11.1\n"
	l.Write("/tmp/data", "line1\nline2\n")
	l.try(t, []toolTest{
		{cmd: "curl http://web/", out: "hello\n"},
		{cmd: "curl web; curl -s http://web:80; curl 10.244.1.1", out: "hello\nhello\nhello\n"},
		{cmd: "curl -s web/echo?a=1", out: "GET /echo?a=1\n" + agent + "Accept: */*\n\n"},
		{cmd: "curl -s web/echo -d a=1 -d b=2", out: "POST /echo\nContent-Type: application/x-www-form-urlencoded\n" + agent + "Accept: */*\na=1&b=2\n"},
		{cmd: "curl -s web/echo -H 'Content-Type: application/json' -H 'X-Test: yes' --data-raw '{\"a\":1}'", out: "POST /echo\nContent-Type: application/json\n" + agent + "X-Test: yes\nAccept: */*\n{\"a\":1}\n"},
		{cmd: "curl -s web/echo --json '{\"a\":1}' -A me -e ref", out: "POST /echo\nContent-Type: application/json\nUser-Agent: me\nReferer: ref\nAccept: application/json\n{\"a\":1}\n"},
		{cmd: "curl -s web/echo -d @data; curl -s web/echo --data-binary @data | tail -3; echo in | curl -s web/echo -d @- | tail -1", out: "POST /echo\nContent-Type: application/x-www-form-urlencoded\n" + agent + "Accept: */*\nline1line2\nline1\nline2\n\nin\n"},
		{cmd: "curl -sG web/echo --data-urlencode 'q=a b&c' -d x=1 | head -1; curl -s -X DELETE web/echo | head -1; curl -s -T data web/up/ -o /dev/null -w '%{method} %{http_code}\\n'", out: "GET /echo?q=a%20b%26c&x=1\nDELETE /echo\nPUT 404\n"},
		{cmd: "curl -s -u user:pw web/echo | grep Auth; curl -s http://u:p@web/echo | grep Auth; curl -s -b a=1 web/echo | grep Cookie; curl -s -r 0-9 web/echo | grep Range; curl -s -H 'User-Agent:' -H 'Accept:' web/echo", out: "Authorization: Basic dXNlcjpwdw==\nAuthorization: Basic dTpw\nCookie: a=1\nRange: bytes=0-9\nGET /echo\n\n"},
		{cmd: "curl -i web | tr -d '\\r'", out: "HTTP/1.1 200 OK\nContent-Length: 6\nContent-Type: text/plain; charset=utf-8\n\nhello\n"},
		{cmd: "curl -sI web/nope | head -1 | tr -d '\\r'; curl -s -D head web >/dev/null; head -1 head | tr -d '\\r'", out: "HTTP/1.1 404 Not Found\nHTTP/1.1 200 OK\n"},
		{cmd: "curl -s -o out web; cat out; curl -sO web/echo; head -1 echo; curl -s web/ -o a web/echo -o b; cat a; curl -so x --output-dir d --create-dirs web; cat d/x", out: "hello\nGET /echo\nhello\nhello\n"},
		{cmd: "curl -s web/redirect -o /dev/null -w '%{http_code} %{redirect_url}\\n'; curl -sL web/redirect; curl -sL web/redirect -o /dev/null -w '%{http_code} %{num_redirects} %{url_effective}\\n'", out: "302 http://web/\nhello\n200 1 http://web/\n"},
		{cmd: "curl -sL --max-redirs 3 web/loop; echo $?; curl -L --max-redirs 3 web/loop", out: "47\n", err: "curl: (47) Maximum (3) redirects followed\n", code: 47},
		{cmd: "curl -s -o /dev/null -w '%{http_code} %{size_download} %{content_type} %{remote_ip}:%{remote_port} %{scheme} %{http_version}\\n' web", out: "200 6 text/plain; charset=utf-8 10.244.1.1:80 http 1.1\n"},
		{cmd: "curl -s -o /dev/null -w '%{time_total}' web | grep -cE '^[0-9]+\\.[0-9]{6}$'; curl -s -w '%{http_code}' http://nohost; echo \" $?\"", out: "1\n000 6\n"},
		{cmd: "curl web/nope; curl -f web/nope", out: "404 page not found\n", err: "curl: (22) The requested URL returned error: 404\n", code: 22},
		{cmd: "curl -sf web/error; echo $?; curl -s --fail-with-body web/error; echo $?", out: "22\nbroken\n22\n"},
		{cmd: "curl http://nohost", err: "curl: (6) Could not resolve host: nohost\n", code: 6},
		{cmd: "curl -s http://nohost; curl -sS http://nohost", err: "curl: (6) Could not resolve host: nohost\n", code: 6},
		{cmd: "curl http://web:9999", err: "curl: (7) Failed to connect to web port 9999 after N ms: Couldn't connect to server\n", code: 7},
		{cmd: "curl http://nowhere", err: "curl: (7) Failed to connect to nowhere port 80 after N ms: Couldn't connect to server\n", code: 7},
		{cmd: "curl --connect-timeout 0.05 http://void", err: "curl: (28) Connection timed out after N milliseconds\n", code: 28},
		{cmd: "curl -m 0.05 http://web:83", err: "curl: (28) Operation timed out after N milliseconds with 0 bytes received\n", code: 28},
		{cmd: "curl -m 0.05 web/slow", err: "curl: (28) Operation timed out after N milliseconds with 0 bytes received\n", code: 28},
		{cmd: "curl http://web:81", err: "curl: (52) Empty reply from server\n", code: 52},
		{cmd: "curl -d x=1 http://web:82", err: "curl: (56) Recv failure: Connection reset by peer\n", code: 56},
		{cmd: "curl http://web:84", out: "half", err: "curl: (18) end of response with 6 bytes missing\n", code: 18},
		{cmd: "curl https://web 2>&1 | head -1; curl -k https://web; curl --cacert /etc/ca.pem https://web", out: "curl: (60) SSL certificate problem: unable to get local issuer certificate\nhello\nhello\n"},
		{cmd: "curl --cacert /etc/ca.pem https://10.244.1.1", err: "curl: (60) SSL: no alternative certificate subject name matches target host name '10.244.1.1'\n", code: 60},
		{cmd: "curl https://web:80", err: "curl: (35) OpenSSL/3.3.2: error:0A00010B:SSL routines::wrong version number\n", code: 35},
		{cmd: "curl --resolve other:80:10.244.1.1 http://other; curl --connect-to other:80:web:80 http://other; curl -s -x http://web:80 http://anything/echo | head -1", out: "hello\nhello\nGET /echo\n"},
		{cmd: "curl -sL -c jar web/cookie | grep Cookie; grep -c session jar; curl -s -b jar web/echo | grep Cookie", out: "Cookie: session=abc\n1\nCookie: session=abc\n"},
		{cmd: "curl -s --retry 3 --retry-delay 0.01 web/flaky", out: "at last\n"},
		{cmd: "curl -s -F a=1 -F 'f=@data;type=text/x' web/echo | sed 's/--*[0-9a-f]\\{16\\}/B/' | tr -d '\\r' | grep -v curl/", out: "POST /echo\nContent-Type: multipart/form-data; boundary=B\nAccept: */*\nB\nContent-Disposition: form-data; name=\"a\"\n\n1\nB\nContent-Disposition: form-data; name=\"f\"; filename=\"data\"\nContent-Type: text/x\n\nline1\nline2\n\nB--\n\n"},
		{cmd: "curl --nope web", err: "curl: option --nope: is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information\n", code: 2},
		{cmd: "curl", err: "curl: (2) no URL specified\ncurl: try 'curl --help' or 'curl --manual' for more information\n", code: 2},
		{cmd: "curl ftp://web", err: "curl: (1) Protocol \"ftp\" not supported\n", code: 1},
		{cmd: "curl http://", err: "curl: (3) URL rejected: No host part in the URL\n", code: 3},
		{cmd: "curl file:///tmp/data; curl file:///nope", out: "line1\nline2\n", err: "curl: (37) Couldn't open file /nope\n", code: 37},
		{cmd: "echo streamed | curl -s -T - web/echo; curl -s -T data web/echo | head -1; curl -s -H @hdr web/echo 2>/dev/null | head -1; curl -s -X POST web/echo | head -1", out: "PUT /echo\nUser-Agent: curl/8.11.1\nAccept: */*\nstreamed\n\nPUT /echo\nGET /echo\nPOST /echo\n"},
		{cmd: "curl -s -L -d x=1 web/redirect; curl -s -E nope.pem -k https://web; echo $?; curl -s -F f=@data web/echo | grep -a octet | tr -d '\\r'; curl -s -d @nofile web; echo $?", out: "hello\n58\nContent-Type: application/octet-stream\n26\n"},
		{cmd: "curl -s --oauth2-bearer tok web/echo | grep Auth; curl -s -w '%header{content-type} %{nope}|\\t%%\\n' -o /dev/null web; curl -s -w '%{stderr}%{http_code}\\n' -o /dev/null web 2>&1; curl -s 'web/a b' -o /dev/null -w '%{http_code}\\n'; curl -s -0 web", out: "Authorization: Bearer tok\ntext/plain; charset=utf-8 |\t%\n200\n404\nhello\n"},
		{cmd: "curl http://web:99999; curl -sS http://web:x", err: "curl: (7) Failed to connect to web port 99999 after N ms: Couldn't connect to server\ncurl: (3) URL rejected: Port number was not a decimal number between 0 and 65535\n", code: 3},
		{cmd: "curl -d", err: "curl: option -d: requires parameter\ncurl: try 'curl --help' or 'curl --manual' for more information\n", code: 2},
		{cmd: "curl -sv -d a=1 web/echo 2>&1 >/dev/null | grep -c upload; curl -sk -v https://web 2>&1 | grep -o 'SSL connection using TLSv1.3'; curl -s --compressed web; curl --help | head -1", out: "1\nSSL connection using TLSv1.3\nhello\nUsage: curl [options...] <url>\n"},
		{cmd: "curl -s -o /no/such web", code: 23},
		{cmd: "curl -sv web", out: "hello\n", err: "* Host web:80 was resolved.\n* IPv6: (none)\n* IPv4: 10.244.1.1\n*   Trying 10.244.1.1:80...\n* Connected to web (10.244.1.1) port 80\n* using HTTP/1.x\n> GET / HTTP/1.1\n> Host: web\n> User-Agent: curl/8.11.1\n> Accept: */*\n> \n< HTTP/1.1 200 OK\n< Content-Length: 6\n< Content-Type: text/plain; charset=utf-8\n< \n{ [6 bytes data]\n* Connection #0 to host web left intact\n"},
		{cmd: "curl -V | head -1 | cut -d' ' -f1-2", out: "curl 8.11.1\n"},
	})
}

func TestWget(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.try(t, []toolTest{
		{cmd: "wget -qO- http://web/", out: "hello\n"},
		{cmd: "wget -q -O - web/redirect; wget -O- web", out: "hello\nhello\n", err: "Connecting to web (10.244.1.1:80)\nwriting to stdout\n-                    100% |********************************|     6  0:00:00 ETA\nwritten to stdout\n"},
		{cmd: "wget http://web/echo; head -1 echo", out: "GET /echo\n", err: "Connecting to web (10.244.1.1:80)\nsaving to 'echo'\necho                 100% |********************************|    28  0:00:00 ETA\n'echo' saved\n"},
		{cmd: "wget http://web/echo", err: "Connecting to web (10.244.1.1:80)\nwget: can't open 'echo': File exists\n", code: 1},
		{cmd: "wget -q --post-data a=1 --header 'X-Test: y' -O- web/echo; wget --spider -q web && echo ok", out: "POST /echo\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: Wget\nX-Test: y\na=1\nok\n"},
		{cmd: "wget -q -O- web/nope", err: "wget: server returned error: HTTP/1.1 404 Not Found\n", code: 1},
		{cmd: "wget -q http://nohost:8080", err: "wget: bad address 'nohost:8080'\n", code: 1},
		{cmd: "wget http://web:9999", err: "Connecting to web:9999 (10.244.1.1:9999)\nwget: can't connect to remote host (10.244.1.1): Connection refused\n", code: 1},
		{cmd: "wget -q -T 0.05 -O- web:83", err: "wget: download timed out\n", code: 1},
		{cmd: "wget -q -T 0.05 -O- void", err: "wget: download timed out\n", code: 1},
		{cmd: "wget -q web:81", err: "wget: error getting response\n", code: 1},
		{cmd: "wget -q --no-check-certificate -O- https://web", out: "hello\n"},
		{cmd: "wget ftp://web", err: "wget: not an http or ftp url: ftp://web\n", code: 1},
	})
}

func TestNetcat(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.try(t, []toolTest{
		{cmd: "echo hi | nc web 7", out: "hi\n"},
		{cmd: "nc -zv web 80; nc -z web 80 && echo open", out: "open\n", err: "web (10.244.1.1:80) open\n"},
		{cmd: "nc -zv web 9999", err: "nc: web (10.244.1.1:9999): Connection refused\n", code: 1},
		{cmd: "nc -z web 9999; echo $?; nc -w 0.05 -zv void 80", out: "1\n", err: "nc: void (10.96.0.99:80): Connection timed out\n", code: 1},
		{cmd: "nc nohost 80", err: "nc: bad address 'nohost'\n", code: 1},
		{cmd: "nc web x", err: "nc: invalid port 'x'\n", code: 1},
		{cmd: "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc web 80 | tail -1", out: "hello\n"},
		{cmd: "(echo served | nc -l -p 5000 >got) & sleep 0.05; echo asked | nc 127.0.0.1 5000; wait; cat got", out: "served\nasked\n"},
		{cmd: "nc -lk -p 5001 -e echo hello & sleep 0.05; nc 127.0.0.1 5001 </dev/null; nc 127.0.0.1 5001 </dev/null; kill $!", out: "\n\n"},
		{cmd: "nc -lu -w 1 -p 5002 >u & sleep 0.05; echo dgram | nc -u -w 0.1 127.0.0.1 5002; wait; cat u", out: "dgram\n"},
		{cmd: "echo x | telnet web 7 2>&1 | tail -2", out: "x\nConnection closed by foreign host\n"},
		{cmd: "telnet web 9999", err: "telnet: can't connect to remote host (10.244.1.1): Connection refused\n", code: 1},
		{cmd: "timeout 0.05 nc web 83; echo $?", out: "124\n"},
	})
	// What only bash knows.
	got := l.Run("bash", "-c", `exec 3<>/dev/tcp/web/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; tail -1 <&3; (echo >/dev/tcp/web/9999) 2>&1`)
	if want := "hello\nbash: line 1: /dev/tcp/web/9999: Connection refused\n"; got.Stdout != want {
		t.Errorf("%+v", got)
	}
}

// serveDNS answers for a cluster.
func (l *lab) serveDNS(t *testing.T) {
	pc, err := l.Net.Host("10.96.0.10").ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	zone := map[string][]string{
		"kubernetes.default.svc.cluster.local.":  {"kubernetes.default.svc.cluster.local. 30 IN A 10.96.0.1"},
		"web.shop.svc.cluster.local.":            {"web.shop.svc.cluster.local. 5 IN A 10.96.3.4", "web.shop.svc.cluster.local. 5 IN A 10.96.3.5"},
		"alias.example.":                         {"alias.example. 60 IN CNAME real.example.", "real.example. 60 IN A 192.0.2.7"},
		"1.0.96.10.in-addr.arpa.":                {"1.0.96.10.in-addr.arpa. 30 IN PTR kubernetes.default.svc.cluster.local."},
		"_http._tcp.web.shop.svc.cluster.local.": {"_http._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 100 80 web.shop.svc.cluster.local."},
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Authoritative = true
		records, ok := zone[strings.ToLower(r.Question[0].Name)]
		if !ok {
			m.Rcode = dns.RcodeNameError
		}
		for _, text := range records {
			rr, err := dns.NewRR(text)
			if err != nil {
				panic(err)
			}
			if k := rr.Header().Rrtype; k == r.Question[0].Qtype || k == dns.TypeCNAME || r.Question[0].Qtype == dns.TypeA && k == dns.TypeA {
				m.Answer = append(m.Answer, rr)
			}
		}
		w.WriteMsg(m)
	})
	started := make(chan struct{})
	server := &dns.Server{PacketConn: pc, Handler: handler, NotifyStartedFunc: func() { close(started) }}
	go server.ActivateAndServe()
	<-started
	t.Cleanup(func() { server.ShutdownContext(context.Background()) })
	l.Write("/etc/resolv.conf", "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n")
}

func TestDNSTools(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serveDNS(t)
	header := "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n"
	l.try(t, []toolTest{
		{cmd: "nslookup kubernetes.default", out: header + "Name:\tkubernetes.default.svc.cluster.local\nAddress: 10.96.0.1\n\n\n"},
		{cmd: "nslookup web", out: header + "Name:\tweb.shop.svc.cluster.local\nAddress: 10.96.3.4\nName:\tweb.shop.svc.cluster.local\nAddress: 10.96.3.5\n\n\n"},
		{cmd: "nslookup -type=a alias.example. 10.96.0.10", out: header + "alias.example\tcanonical name = real.example\nName:\treal.example\nAddress: 192.0.2.7\n\n"},
		{cmd: "nslookup 10.96.0.1; nslookup -type=srv _http._tcp.web", out: header + "1.0.96.10.in-addr.arpa\tname = kubernetes.default.svc.cluster.local\n\n" + header + "_http._tcp.web.shop.svc.cluster.local\tservice = 0 100 80 web.shop.svc.cluster.local\n\n"},
		{cmd: "nslookup nope", out: header + "** server can't find nope: NXDOMAIN\n\n** server can't find nope: NXDOMAIN\n\n", code: 1},
		{cmd: "nslookup -timeout=0.1 -retry=1 web void", out: ";; connection timed out; no servers could be reached\n\n", code: 1},
		{cmd: "nslookup -type=x web", err: "nslookup: invalid query type \"x\"\n", code: 1},
		{cmd: "dig +short kubernetes.default.svc.cluster.local; dig +short +search web; dig +short -x 10.96.0.1; dig +short srv _http._tcp.web.shop.svc.cluster.local; dig +short nope", out: "10.96.0.1\n10.96.3.4\n10.96.3.5\nkubernetes.default.svc.cluster.local.\n0 100 80 web.shop.svc.cluster.local.\n"},
		{cmd: "dig +noall +answer @10.96.0.10 alias.example A", out: "alias.example.\t60\tIN\tCNAME\treal.example.\nreal.example.\t60\tIN\tA\t192.0.2.7\n"},
		{cmd: "dig nope.example | grep -v 'WHEN\\|Query time\\|SIZE' | sed 's/id: [0-9]*/id: N/'", out: "\n; <<>> DiG 9.18.30 <<>> nope.example\n;; global options: +cmd\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: NXDOMAIN, id: N\n;; flags: qr aa rd; QUERY: 1, ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 0\n;; WARNING: recursion requested but not available\n\n;; QUESTION SECTION:\n;nope.example.\t\tIN\tA\n\n;; SERVER: 10.96.0.10#53(10.96.0.10) (UDP)\n\n"},
		{cmd: "dig +tries=1 +time=1 @void web", out: "\n; <<>> DiG 9.18.30 <<>> +tries=1 +time=1 @void web\n;; global options: +cmd\n;; communications error to 10.96.0.99#53: timed out\n\n;; no servers could be reached\n", code: 9},
		{cmd: "host web; host 10.96.0.1; host nope; echo $?; host -t srv _http._tcp.web", out: "web.shop.svc.cluster.local has address 10.96.3.4\nweb.shop.svc.cluster.local has address 10.96.3.5\n1.0.96.10.in-addr.arpa domain name pointer kubernetes.default.svc.cluster.local.\nHost nope not found: 3(NXDOMAIN)\n1\n_http._tcp.web.shop.svc.cluster.local has SRV record 0 100 80 web.shop.svc.cluster.local.\n"},
		{cmd: "getent hosts web; getent passwd root; getent hosts nope; echo $?", out: "10.244.1.1        web\nroot:x:0:0:root:/root:/bin/sh\n2\n"},
	})
}

func TestPingAndInterfaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Net.Open = []kit.Socket{
		{Network: "tcp", Local: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("0.0.0.0:80")), State: "LISTEN"},
		{Network: "tcp", Local: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.244.0.5:80")), Remote: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.244.1.1:40000")), State: "ESTABLISHED"},
		{Network: "udp", Local: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("0.0.0.0:53"))},
	}
	l.try(t, []toolTest{
		{cmd: "ping -c 2 -i 0.01 web", out: "PING web (10.244.1.1): 56 data bytes\n64 bytes from 10.244.1.1: seq=0 ttl=64 time=0.123 ms\n64 bytes from 10.244.1.1: seq=1 ttl=64 time=0.123 ms\n\n--- web ping statistics ---\n2 packets transmitted, 2 packets received, 0% packet loss\nround-trip min/avg/max = 0.123/0.123/0.123 ms\n"},
		{cmd: "ping -c 1 -W 0.02 nowhere", out: "PING nowhere (10.244.9.9): 56 data bytes\n\n--- nowhere ping statistics ---\n1 packets transmitted, 0 packets received, 100% packet loss\n", code: 1},
		{cmd: "ping -c1 nohost", err: "ping: bad address 'nohost'\n", code: 1},
		{cmd: "traceroute -n web", out: "traceroute to web (10.244.1.1), 30 hops max, 46 byte packets\n 1  web (10.244.1.1)  0.123 ms  0.123 ms  0.123 ms\n"},
		{cmd: "netstat -tln", out: "Active Internet connections (only servers)\nProto Recv-Q Send-Q Local Address           Foreign Address         State       \ntcp        0      0 0.0.0.0:80              0.0.0.0:*               LISTEN      \n"},
		{cmd: "netstat -an | tail -n +3 | tr -s ' ' | cut -d' ' -f1,4-6; netstat -tn | tail -1 | tr -s ' ' | cut -d' ' -f6", out: "tcp 0.0.0.0:80 0.0.0.0:* LISTEN\ntcp 10.244.0.5:80 10.244.1.1:40000 ESTABLISHED\nudp 0.0.0.0:53 0.0.0.0:* \nESTABLISHED\n"},
		{cmd: "ss -tlnH | tr -s ' '; ss -anH | wc -l; ss -tnH | tr -s ' ' | cut -d' ' -f1,4,5", out: "LISTEN 0 4096 0.0.0.0:80 0.0.0.0:* \n3\nESTAB 10.244.0.5:80 10.244.1.1:40000\n"},
		{cmd: "ip -4 addr show eth0 | grep inet | tr -s ' '; ip route | head -1; ip -br a | tr -s ' '; ifconfig eth0 | grep -o 'inet addr:[0-9.]*'; route -n | sed -n 3p | tr -s ' ' | cut -d' ' -f1,2", out: " inet 10.244.0.5/24 brd 10.244.0.255 scope global eth0\ndefault via 10.244.0.1 dev eth0 \nlo UNKNOWN 127.0.0.1/8 \neth0 UP 10.244.0.5/24 \ninet addr:10.244.0.5\n0.0.0.0 10.244.0.1\n"},
		{cmd: "ip link set eth0 down", err: "ip: RTNETLINK answers: Operation not permitted\n", code: 2},
		{cmd: "ifconfig wlan0", err: "ifconfig: wlan0: error fetching interface information: Device not found\n", code: 1},
	})
}
