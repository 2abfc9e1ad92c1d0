package box

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/aiopslab/aiopslab/aci/tool"
)

const config = "apiVersion: v1\nkind: Config\n"

// newTestBox is a box in a new directory, in a cluster with one service.
func newTestBox(t *testing.T) *Box {
	t.Helper()
	return machineIn(t, t.TempDir(), "127.0.0.1:6443")
}

func machineIn(t *testing.T, dir, api string) *Box {
	t.Helper()
	return machineWith(t, dir, api, standard, tool.OwnRoot())
}

// small is a box with limits that are soon reached.
func small(t *testing.T, change func(*limits)) *Box {
	t.Helper()
	l := standard
	change(&l)
	return machineWith(t, t.TempDir(), "127.0.0.1:6443", l, tool.OwnRoot())
}

// machineWith is a box whose processes have a root of their own or not.
func machineWith(t *testing.T, dir, api string, l limits, ownRoot bool) *Box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBox(Options{
		Dir: dir, Dial: fakeCluster(t), DNS: "10.96.0.10", Search: []string{"shop.svc.cluster.local", "svc.cluster.local"},
		Kubeconfig: []byte(config), API: api, Self: []string{self, "tool"},
	}, l, ownRoot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// fakeCluster has a DNS server and, at 10.96.0.7:80, a web server.
func fakeCluster(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, network, address string) (net.Conn, error) {
		here, there := net.Pipe()
		switch address {
		case "10.96.0.10:53":
			if network == "udp" {
				there = datagrams{there}
			}
			go answer(there)
		case "10.96.0.7:80":
			go func() {
				defer there.Close()
				buf := make([]byte, 4096)
				_, _ = there.Read(buf)
				_, _ = there.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n"))
			}()
		default:
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return here, nil
	}
}

// datagrams is a connection that is known as one of datagrams.
type datagrams struct{ net.Conn }

func (d datagrams) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := d.Read(p)
	return n, d.RemoteAddr(), err
}

func (d datagrams) WriteTo(p []byte, _ net.Addr) (int, error) { return d.Write(p) }

func answer(c net.Conn) {
	defer c.Close()
	d := &dns.Conn{Conn: c}
	q, err := d.ReadMsg()
	if err != nil {
		return
	}
	m := new(dns.Msg)
	m.SetReply(q)
	if name := q.Question[0].Name; name == "geo.shop.svc.cluster.local." {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(10, 96, 0, 7)}}
	} else {
		m.Rcode = dns.RcodeNameError
	}
	_ = d.WriteMsg(m)
}

// run runs a command that should be quick.
func run(t *testing.T, b *Box, command string) Outcome {
	t.Helper()
	o := b.Run(t.Context(), command, time.Minute)
	if o.TimedOut {
		t.Fatalf("%s: timed out after %q", command, o.Output)
	}
	return o
}

func TestCommands(t *testing.T) {
	b := newTestBox(t)
	if o := run(t, b, "echo 'Hello, World!'"); o.Output != "Hello, World!\n" {
		t.Errorf("%q", o.Output)
	}
	for command, want := range map[string]string{
		`for p in a b; do echo $p; done | awk '{print NR, $1}'`:    "1 a\n2 b\n",
		"cat <<EOF | tr a-z A-Z\n$(echo x)\nEOF":                   "X\n",
		`pwd; echo $HOME $USER $KUBECONFIG`:                        "/root\n/root root /root/.kube/config\n",
		`cat $KUBECONFIG`:                                          config,
		`echo '{"a":[1,2]}' | jq '.a | length'`:                    "2\n",
		`curl -s http://geo`:                                       "hi\n",
		`dig +short geo.shop.svc.cluster.local`:                    "10.96.0.7\n",
		`curl -s geo.shop.svc.cluster.local:80; curl -s 10.96.0.7`: "hi\nhi\n",
		`echo x > /dev/null && head -c 3 /dev/zero | wc -c`:        "3\n",
		`which kubectl jq; command -v helm`:                        "/bin/kubectl\n/bin/jq\n/bin/helm\n",
		`which docker vi || echo none`:                             "none\n",
		`mkdir -p /tmp/s && printf '#!/usr/bin/env bash\necho script $1\n' > /tmp/s/x && chmod +x /tmp/s/x && /tmp/s/x 5`: "script 5\n",
		`sudo -E echo hi`:                      "hi\n",
		`printf 'b\na\n' > f; sort f; ls f`:    "a\nb\nf\n",
		`yes | head -1; echo ${PIPESTATUS[1]}`: "y\n0\n",
		`ls -d /bin /dev /etc /root /tmp`:      "/bin\n/dev\n/etc\n/root\n/tmp\n",
	} {
		if o := run(t, b, command); o.Output != want || o.Status != 0 {
			t.Errorf("%s: %q, status %d; want %q", command, o.Output, o.Status, want)
		}
	}
}

func TestStateAndBackground(t *testing.T) {
	b := newTestBox(t)
	run(t, b, "cd /tmp; x=5; f() { echo f$1; }")
	if o := run(t, b, "pwd; echo $x; f 1"); o.Output != "/tmp\n5\nf1\n" {
		t.Errorf("%q", o.Output)
	}
	if b.Dir() != "/tmp" {
		t.Error(b.Dir())
	}
	if o := run(t, b, "exit 3"); o.Status != 3 {
		t.Errorf("status %d", o.Status)
	}
	// A job in the background ends with the call.
	if o := run(t, b, "(sleep 50; echo late > /tmp/late) & echo started"); o.Output != "started\n" {
		t.Errorf("%q", o.Output)
	}
	if o := run(t, b, "ps -ef | grep -c '[s]leep 50'"); o.Output != "0\n" {
		t.Errorf("still running: %q", o.Output)
	}
	if o := run(t, b, "echo out; echo err >&2; false"); o.Output != "out\nerr\n" || o.Status != 1 {
		t.Errorf("%+v", o)
	}
}

// No name leads out of the scratch directory.
func TestNoEscape(t *testing.T) {
	parent := t.TempDir()
	secret := filepath.Join(parent, "secret")
	if err := os.WriteFile(secret, []byte("the host's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "scratch")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := machineIn(t, dir, "127.0.0.1:6443")
	t.Setenv("LAB_SECRET", "the host's")
	for _, command := range []string{
		"cat ../../../secret ../../../../../../etc/hostname-of-the-host",
		"cat " + secret,
		"cat /proc/self/environ; cat /proc/1/cmdline; ls /proc",
		"ln -s " + secret + " l1; cat l1",
		"ln -s ../../secret /l2; cat /l2",
		"mkdir -p /a/b; ln -s ../../x /a/b/l; mv /a/b/l /l3; ln -s /l3 l4; cat /l3/../secret; ls /l3/..",
		"mkdir -p /c/d; ln -s ../../secret /c/d/l; mv /c/d/l /l5; cat /l5; echo x > /l5; cp /l5 /copy",
		"source " + secret + "; . ../../../secret; bash " + secret,
		"echo x > " + secret + "; echo x > ../../secret2; echo x >> /../../secret3",
		"curl -s file://" + secret + "; curl -s -T /etc/passwd file://" + secret,
		"cd /..; pwd; cat secret; cd ../..; ls",
		"find / -name secret -exec cat {} +",
		"tar cf - ../.. | tar tf -; cp -r ../../../secret /all",
		"env; set; printenv LAB_SECRET; echo $LAB_SECRET",
		"read x < " + secret + "; echo $x; mapfile -t y < " + secret + "; echo ${y[0]}; echo $(<" + secret + ")",
		"awk 'BEGIN{while((getline l < \"" + secret + "\")>0) print l; system(\"cat " + secret + "\")}'",
		"sed -n 'r " + secret + "' /etc/hosts; sed '1r " + secret + "' /etc/hosts; jq -Rs . " + secret,
		"grep -r host " + parent + "; diff " + secret + " /dev/null; dd if=" + secret + "; xxd " + secret,
	} {
		o := run(t, b, command)
		if strings.Contains(o.Output, "the host's") || strings.Contains(o.Output, dir) {
			t.Errorf("%s shows %q", command, o.Output)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "the host's\n" {
		t.Errorf("the secret is %q, %v", data, err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 2 {
		t.Errorf("beside the scratch directory: %v, %v", entries, err)
	}
}

func TestNetworkIsTheClusters(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var reached atomic.Bool
	go func() {
		if c, err := l.Accept(); err == nil {
			reached.Store(true)
			c.Close()
		}
	}()
	b := newTestBox(t)
	host, port, _ := net.SplitHostPort(l.Addr().String())
	for _, command := range []string{
		"curl -sS http://" + l.Addr().String(), "curl -sS http://localhost:" + port, "wget -qO- http://" + host + ":" + port,
		"nc -zv " + host + " " + port, "exec 3<>/dev/tcp/" + host + "/" + port,
		"curl -sS --proxy " + l.Addr().String() + " http://geo", "curl -sS http://example.com", "nc -l -p 8080",
	} {
		if o := run(t, b, command); o.Status == 0 {
			t.Errorf("%s succeeds: %q", command, o.Output)
		}
	}
	if reached.Load() {
		t.Error("the host's network was reached")
	}
}

func TestTimeout(t *testing.T) {
	b := newTestBox(t)
	for _, command := range []string{
		"while :; do :; done", "yes > /dev/null", "awk 'BEGIN{while(1);}'", "jq -n 'def f: f; f'", "sleep 0.1; cat <(while :; do :; done)",
		"echo before; trap '' TERM; kubectl hang", "kubectl hang | cat", "yes | tail -n 1", "x=$(sleep 0.2; kubectl hang)",
	} {
		if o := b.Run(t.Context(), command, 300*time.Millisecond); !o.TimedOut || o.Status == 0 { // They would never end.
			t.Errorf("%s: %+v", command, o)
		}
	}
	var pid int
	for limit := 500 * time.Millisecond; pid == 0; limit *= 2 { // A busy machine may need some time to start it.
		o := b.Run(t.Context(), "kubectl hang", limit)
		pid, _ = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(o.Output, "pid ")))
		if pid == 0 && limit > 20*time.Second {
			t.Fatalf("%q", o.Output)
		}
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d goes on: %v", pid, err)
	}
	if o := run(t, b, "echo still here"); o.Output != "still here\n" {
		t.Errorf("%q", o.Output)
	}
}

func TestDiskIsBounded(t *testing.T) {
	b := small(t, func(l *limits) { l.Disk = 1 << 20 })
	o := run(t, b, "head -c 2000000 /dev/zero > big")
	if o.Status == 0 || !strings.Contains(o.Output, "No space left") {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "rm big; echo x > small; cat small"); o.Output != "x\n" {
		t.Errorf("no room after rm: %+v", o)
	}
	// What the agent does to its files does not keep others from removing them.
	run(t, b, "mkdir -p a/b; chmod 000 a/b a; chmod 000 small")
	if fi, err := os.Stat(filepath.Join(b.dir, "root/a")); err != nil || fi.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	b := newTestBox(t)
	o := run(t, b, "head -c 9000000 /dev/zero | tr '\\0' x; echo end")
	if o.Lost == 0 || len(o.Output) > maxKept+2*maxTail || !strings.HasSuffix(o.Output, "end\n") {
		t.Errorf("lost %d of %d", o.Lost, len(o.Output))
	}
}

// The tools run in the directory that stands for the agent's, with the agent's paths, and do not
// show where that is.
func TestTools(t *testing.T) {
	b := newTestBox(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "abc")
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	o := run(t, b, "cd /tmp; export MINE=1; kubectl get -f /tmp/x.yaml -n shop")
	want := "args [\"kubectl\" \"get\" \"-f\" \"/tmp/x.yaml\" \"-n\" \"shop\"]\ndir /tmp\n"
	if !strings.HasPrefix(o.Output, want) {
		t.Errorf("%q, want %q", o.Output, want)
	}
	for _, not := range []string{"AWS", "PROXY", "MINE", b.dir} {
		if strings.Contains(o.Output, not) {
			t.Errorf("%s in %s", not, o.Output)
		}
	}
	for _, env := range []string{"env HOME=/root\n", "env KUBECONFIG=/root/.kube/config\n", "env TMPDIR=/tmp\n"} {
		if !strings.Contains(o.Output, env) {
			t.Errorf("no %q in %q", env, o.Output)
		}
	}
	run(t, b, "echo 'kind: X' > /tmp/x.yaml")
	for command, want := range map[string]string{
		"kubectl apply -f /tmp/x.yaml": "kind: X\n",
		"cd /tmp; kubectl apply -f ../tmp/x.yaml; cd; kubectl apply -f ../../tmp/x.yaml": "kind: X\nkind: X\n",
		"kubectl apply -f <(echo 'kind: Y')":                                             "kind: Y\n",
		"cat /tmp/x.yaml | kubectl cat":                                                  "kind: X\n",
		"kubectl cat <<< hi; kubectl cat":                                                "hi\n",
		"cd; ln -s /tmp/x.yaml /root/l; kubectl apply -f l; kubectl apply -f /root/l":    "kind: X\nkind: X\n",
	} {
		if o := run(t, b, command); o.Output != want || o.Status != 0 {
			t.Errorf("%s: %+v, want %q", command, o, want)
		}
	}
	if o := run(t, b, "kubectl apply -f /tmp/none.yaml"); !strings.Contains(o.Output, `the path "/tmp/none.yaml"`) || o.Status != 1 {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "kubectl fail"); o.Output != "out\nerr\n" && o.Output != "err\nout\n" || o.Status != 7 {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "echo kubectl list | xargs -n 2 timeout 20 env A=1; kubectl version | wc -l"); !strings.HasSuffix(o.Output, "1\n") {
		t.Errorf("%+v", o)
	}
}

// A kubeconfig must not have a program run.
func TestKubeconfigWithProgram(t *testing.T) {
	b := newTestBox(t)
	const plugin = `cat > /tmp/k <<EOF
apiVersion: v1
kind: Config
users:
- name: me
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}
EOF
`
	for _, command := range []string{"KUBECONFIG=/tmp/k kubectl version", "kubectl --kubeconfig /tmp/k version", "cd /tmp; kubectl --kubeconfig=k version", "cp /tmp/k ~/.kube/config; helm version"} {
		if o := run(t, b, plugin+command); o.Status == 0 || !strings.Contains(o.Output, "runs a program") {
			t.Errorf("%s: %+v", command, o)
		}
	}
}

// The tools are confined by the kernel, not only by how they are called.
func TestConfinement(t *testing.T) {
	t.Run("translated paths", func(t *testing.T) { testConfinement(t, false) })
	t.Run("own root", func(t *testing.T) {
		if !tool.OwnRoot() {
			t.Skip("processes cannot have a root of their own here")
		}
		testConfinement(t, true)
	})
}

func testConfinement(t *testing.T, ownRoot bool) {
	if strings.HasPrefix(tool.Describe(false), "none") {
		t.Skip(tool.Describe(false))
	}
	parent := t.TempDir()
	if err := os.WriteFile(filepath.Join(parent, "secret"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "scratch")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	api, other := listen(), listen()
	b := machineWith(t, dir, api.Addr().String(), standard, ownRoot)
	inside := dir
	if ownRoot {
		inside = ""
	}
	self, _ := os.Executable()
	tests := map[string]bool{
		"kubectl read /etc/shadow":                      false,
		"kubectl read /etc/passwd":                      ownRoot, // The agent's own.
		"kubectl read " + parent + "/secret":            false,
		"kubectl list /":                                ownRoot,
		"kubectl list /usr":                             false,
		"kubectl list " + parent:                        false,
		"kubectl write " + parent + "/mine":             false,
		"kubectl read /proc/self/environ":               false,
		"kubectl start /bin/true":                       false,
		"kubectl start " + self:                         false,
		"kubectl read " + inside + "/root/.kube/config": true,
		"kubectl write " + inside + "/tmp/mine":         true,
		"kubectl connect " + api.Addr().String():        true,
		"kubectl start " + inside + "/root/copy":        false,
		"ln -s ../../x a; kubectl read ../../../secret": false,
	}
	if !strings.Contains(tool.Describe(false), "cannot confine connections") {
		tests["kubectl connect "+other.Addr().String()] = false
	}
	program, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "root/copy"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for command, allowed := range tests {
		o := run(t, b, command)
		if got := strings.HasSuffix(o.Output, "succeeded\n"); got != allowed {
			t.Errorf("%s: allowed is %v: %q", command, got, o.Output)
		}
	}
}

// A command that takes too much memory is ended, not the lab.
func TestMemoryIsBounded(t *testing.T) {
	b := small(t, func(l *limits) { l.Memory = 32 << 20 })
	for _, command := range []string{"yes | sort", "x=$(yes)", "awk 'BEGIN{while(1) a[n++]=n}'", "head -c 100000000 /dev/zero | tac", "jq -n '[range(100000000)]'"} {
		if o := run(t, b, command); !o.TooLarge || o.Status == 0 {
			t.Errorf("%s: %.200q, status %d", command, o.Output, o.Status)
		}
	}
	if o := run(t, b, "echo x > f; cp f f; cat f; cp -r / /all; seq 1 1000 | sort -n | tail -1"); o.TooLarge || !strings.HasPrefix(o.Output, "cp: 'f' and 'f' are the same file\nx\n") || !strings.HasSuffix(o.Output, "1000\n") {
		t.Errorf("%+v", o)
	}
}
