package coredns

import (
	"encoding/pem"
	"io"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs CoreDNS on a machine with a Corefile.
func start(t *testing.T, corefile string) (*kittest.Machine, *kittest.Run) {
	t.Helper()
	m := kittest.New(t).Machine("dns", "10.244.0.2")
	m.Write("/etc/coredns/Corefile", corefile)
	return m, m.Start(Main, "/coredns", "-conf", "/etc/coredns/Corefile")
}

// query asks over the wire and returns the code and the answers.
func query(t *testing.T, m *kittest.Machine, network, port, question string) string {
	t.Helper()
	name, kind, _ := strings.Cut(question, " ")
	c, err := m.Env().Net.DialContext(t.Context(), network, "10.244.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.StringToType[kind])
	res, _, err := (&dns.Client{Net: network}).ExchangeWithConnContext(t.Context(), q, &dns.Conn{Conn: c})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{dns.RcodeToString[res.Rcode]}
	for _, rr := range res.Answer {
		out = append(out, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return strings.Join(out, "; ")
}

const corefile = `.:53 {
    errors
    log
    health
    ready
    prometheus
    rewrite name old.example.com new.example.com
    rewrite name suffix .internal .example.com
    rewrite continue name prefix www. web.
    rewrite name regex (.*)\.eu\.(.*) {1}.{2}
    template IN A tpl.example.com {
       match "^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)\.tpl"
       answer "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ .Group.b }}"
    }
    template ANY ANY gone.example.com {
       rcode NXDOMAIN
    }
    hosts /etc/coredns/hosts example.com {
       10.1.0.2 new.example.com web.example.com
       fd00::1 new.example.com
       ttl 7
       fallthrough
    }
    forward . /etc/resolv.conf
}
plain.example.com:1053 {
}
`

func TestServer(t *testing.T) {
	m := kittest.New(t).Machine("dns", "10.244.0.2")
	m.Write("/etc/coredns/Corefile", corefile)
	m.Write("/etc/coredns/hosts", "# comment\n10.1.0.9 file.example.com # trailing\n")
	run := m.Start(Main, "/coredns", "-conf", "/etc/coredns/Corefile")
	m.WaitListen(":8181")
	m.WaitListen(":8080")
	m.WaitListen(":9153")
	run.Await("CoreDNS-" + version)
	tests := []struct{ question, want string }{
		{"new.example.com A", "NOERROR; new.example.com. 7 IN A 10.1.0.2"},
		{"new.example.com AAAA", "NOERROR; new.example.com. 7 IN AAAA fd00::1"},
		{"new.example.com TXT", "NOERROR"},
		{"file.example.com A", "NOERROR; file.example.com. 7 IN A 10.1.0.9"},
		{"2.0.1.10.in-addr.arpa PTR", "NOERROR; 2.0.1.10.in-addr.arpa. 7 IN PTR new.example.com.; 2.0.1.10.in-addr.arpa. 7 IN PTR web.example.com."},
		{"old.example.com A", "NOERROR; old.example.com. 7 IN A 10.1.0.2"},
		{"new.internal A", "NOERROR; new.internal. 7 IN A 10.1.0.2"},
		{"www.eu.example.com A", "NOERROR; www.eu.example.com. 7 IN A 10.1.0.2"},
		// A rule that stops keeps the next one from being applied.
		{"web.eu.internal A", "SERVFAIL"},
		{"ip-3-4.tpl.example.com A", "NOERROR; ip-3-4.tpl.example.com. 60 IN A 10.0.3.4"},
		{"other.tpl.example.com A", "SERVFAIL"},
		{"x.gone.example.com MX", "NXDOMAIN"},
		{"unknown.example.com A", "SERVFAIL"},
	}
	for _, tt := range tests {
		for _, network := range []string{"udp", "tcp"} {
			if diff := cmp.Diff(tt.want, query(t, m, network, "53", tt.question)); diff != "" {
				t.Errorf("%s over %s: %s", tt.question, network, diff)
			}
		}
	}
	if got := query(t, m, "udp", "1053", "x.plain.example.com A"); got != "REFUSED" {
		t.Errorf("no plug-in: %s", got)
	}
	if got := query(t, m, "udp", "1053", "example.org A"); got != "REFUSED" {
		t.Errorf("no zone: %s", got)
	}
	for url, want := range map[string]string{
		"http://dns:8080/health": "OK", "http://dns:8181/ready": "OK",
		"http://dns:9153/metrics": `coredns_dns_requests_total{family="1",proto="tcp",server="dns://:53",type="MX",view="",zone="."} 1` + "\n",
	} {
		res, err := m.Client().Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s", url, body)
		}
		// A scrape with a series twice is refused as a whole.
		seen := map[string]bool{}
		for line := range strings.Lines(string(body)) {
			series, _, _ := strings.Cut(line, "} ")
			if seen[series] && strings.Contains(series, "{") {
				t.Errorf("series %s is there twice", series)
			}
			seen[series] = true
		}
	}
	run.Await("[ERROR] plugin/errors: 2 unknown.example.com. A: dial udp: connect: network is unreachable\n")
	run.Await(`"A IN new.example.com. tcp 33 false 512" NOERROR qr,aa,rd,ra 64 `)
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 || !strings.Contains(run.Stdout.String(), "[INFO] SIGTERM: Shutting down servers then terminating") {
		t.Errorf("exit %d, %s", code, run.Stderr)
	}
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before = ".:53 {\n reload\n hosts {\n 10.0.0.1 a.example.com\n }\n}\n"
		m, run := start(t, before)
		synctest.Wait()
		if got := query(t, m, "udp", "53", "a.example.com A"); !strings.HasSuffix(got, "10.0.0.1") {
			t.Errorf("at first: %s", got)
		}
		m.Write("/etc/coredns/Corefile", strings.Replace(before, "hosts", "hosst", 1))
		time.Sleep(reloadInterval)
		synctest.Wait()
		if got := query(t, m, "udp", "53", "a.example.com A"); !strings.HasSuffix(got, "10.0.0.1") {
			t.Errorf("after a mistake: %s", got)
		}
		run.Await("[ERROR] plugin/reload: Corefile changed but reload failed: /etc/coredns/Corefile:3 - Error during parsing: Unknown directive 'hosst'")
		m.Write("/etc/coredns/Corefile", strings.Replace(before, "10.0.0.1", "10.0.0.2", 1))
		time.Sleep(reloadInterval)
		synctest.Wait()
		if got := query(t, m, "udp", "53", "a.example.com A"); !strings.HasSuffix(got, "10.0.0.2") {
			t.Errorf("after a change: %s", got)
		}
		run.Await("[INFO] Reloading complete")
	})
}

func TestStartErrors(t *testing.T) {
	tests := []struct{ name, corefile, stderr string }{
		{"syntax", ". {", "/etc/coredns/Corefile:1 - Error during parsing: Unexpected end of file, expected '}'\n"},
		{"not in a pod", ". {\n kubernetes cluster.local\n}", "/etc/coredns/Corefile:2 - Error during parsing: plugin/kubernetes: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined\n"},
		{"rewrite", ". {\n rewrite type A AAAA\n}", "/etc/coredns/Corefile:2 - Error during parsing: plugin/rewrite: only the rewriting of names is supported\n"},
		{"rewrite how", ". {\n rewrite name sufix a b\n}", "/etc/coredns/Corefile:2 - Error during parsing: plugin/rewrite: unknown match type 'sufix' of a name rule\n"},
		{"rcode", ". {\n template IN A {\n rcode SOSO\n }\n}", "/etc/coredns/Corefile:2 - Error during parsing: plugin/template: unknown rcode SOSO\n"},
		{"port in use", ".:53 {\n whoami\n health :53\n}", "listen tcp [::]:53: bind: address already in use\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, run := start(t, tt.corefile)
			if code := run.Wait(); code != 1 || run.Stderr.String() != tt.stderr {
				t.Errorf("exit %d, %q", code, run.Stderr)
			}
		})
	}
	m := kittest.New(t).Machine("dns", "10.244.0.2")
	run := m.Start(Main, "/coredns", "-conf", "/none")
	if code := run.Wait(); code != 1 || !strings.Contains(run.Stderr.String(), "open /none: no such file or directory") {
		t.Errorf("exit %d, %q", code, run.Stderr)
	}
	if run = m.Start(Main, "/coredns", "-version"); run.Wait() != 0 || !strings.HasPrefix(run.Stdout.String(), "CoreDNS-"+version) {
		t.Errorf("%s", run.Stdout)
	}
	if run = m.Start(Main, "/coredns", "-plugin"); run.Wait() != 2 {
		t.Errorf("%s", run.Stderr)
	}
}

// TestRefusedCorefileLeavesNothing starts to watch a cluster for a block and then refuses the next;
// goleak sees what goes on.
func TestRefusedCorefileLeavesNothing(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	srv.Close()
	m := kittest.New(t).Machine("dns", "10.244.0.2")
	m.Vars = map[string]string{"KUBERNETES_SERVICE_HOST": "10.244.0.2", "KUBERNETES_SERVICE_PORT": "6443"}
	m.Write("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", string(ca))
	m.Write("/var/run/secrets/kubernetes.io/serviceaccount/token", "token")
	m.Write("/Corefile", "a {\n kubernetes\n}\nb {\n kubernetes\n rewrite\n}\nc {\n kubernetes\n template\n}")
	run := m.Start(Main, "/coredns")
	if code := run.Wait(); code != 1 || !strings.Contains(run.Stderr.String(), "Corefile:6 - Error during parsing: plugin/rewrite:") {
		t.Errorf("exit %d, %s", code, run.Stderr)
	}
	// A watch that failed sleeps for a while before it finds that nobody wants it any more.
	for deadline := time.Now().Add(2 * time.Minute); goleak.Find() != nil; {
		if time.Now().After(deadline) {
			t.Fatal(goleak.Find())
		}
	}
}
