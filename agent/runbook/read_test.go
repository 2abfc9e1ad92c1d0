package runbook

import (
	"reflect"
	"slices"
	"testing"
)

func TestReadRows(t *testing.T) {
	rows := readRows(`Warning: something
NAME                    READY   STATUS             RESTARTS      AGE    IP            NODE     NOMINATED NODE   READINESS GATES
geo-7bc594d77-ct47g     0/1     CrashLoopBackOff   6 (58s ago)   6m8s   10.244.2.9    node-3   <none>           <none>
consul-6bdbc9cd44-8xzpv 1/1     Running            0             11m    10.244.0.3    node-1   <none>           <none>
rate-64cdd59946-jks85   1/1     Terminating        0             11m    10.244.0.4    node-1   <none>           <none>
load-1                  0/1     Completed          0             11m    10.244.0.5    node-1   <none>           <none>
user-5db68655f9-bkh8w   0/1     Pending            0             5s     <none>        <none>   <none>           <none>
frontend-b48b59f4c-sk8d7  1/1   Runn`)
	var ill []string
	for _, r := range rows {
		if r.ill() {
			ill = append(ill, r.name)
		}
	}
	if want := []string{"geo-7bc594d77-ct47g", "user-5db68655f9-bkh8w"}; !slices.Equal(ill, want) {
		t.Errorf("ill are %q, want %q", ill, want)
	}
	if want := (row{name: "geo-7bc594d77-ct47g", status: "CrashLoopBackOff", restarts: 6, age: "6m8s", ip: "10.244.2.9", node: "node-3"}); rows[0] != want {
		t.Errorf("got %+v, want %+v", rows[0], want)
	}
}

func TestReadProbes(t *testing.T) {
	got := readProbes(`well.n:80 0 1
well.n:80 0 2
closed.n:81 1 3
closed.n:81 1 2
gone.n:82 1 2003
gone.n:82 1 2004
10.1.2.3:83 0 1203
10.1.2.3:83 0 900
nonsense
half.n:84 0`)
	want := []probe{
		{service: "well", port: 80, tries: 2},
		{service: "closed", port: 81, tries: 2, refused: 2},
		{service: "gone", port: 82, tries: 2, timeout: 2},
		{service: "10.1.2.3", port: 83, tries: 2, slow: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i, w := range []struct{ unreachable, closed bool }{{false, false}, {false, true}, {true, false}, {true, false}} {
		if got[i].unreachable() != w.unreachable || got[i].closed() != w.closed {
			t.Errorf("%+v: unreachable %v, closed %v", got[i], got[i].unreachable(), got[i].closed())
		}
	}
}

func TestReadSamples(t *testing.T) {
	got := readSamples("http-errors frontend 0.25\njq: error (at <stdin>:1): nothing\nrpc-p95 geo NaN\nthrottled a-b 0.9\n")
	if want := []sample{{"http-errors", "frontend", 0.25}, {"throttled", "a-b", 0.9}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReadAccounts(t *testing.T) {
	got := readAccounts(`db = db.getSiblingDB("admin");
db.createUser({user: "root", pwd: "secret", roles: [{role: "userAdminAnyDatabase", db: "admin"}]});
db.createUser({
  user: 'app',
  pwd: 'pw',
  roles: [{role: "readWrite", db: "things"},
    {role: "read", db: "others"}],
});
db.createUser({user: "half"});`)
	want := []account{
		{"root", "secret", `[{role: "userAdminAnyDatabase", db: "admin"}]`},
		{"app", "pw", `[{role: "readWrite", db: "things"}, {role: "read", db: "others"}]`},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindPrometheus(t *testing.T) {
	got := findPrometheus(`{"kind":"Service"}
observe      prometheus-kube-state-metrics   ClusterIP   10.96.31.44    <none>   8080/TCP       28s
observe      prometheus-server               NodePort    10.96.72.247   <none>   80:32000/TCP   28s
`)
	if got != "prometheus-server.observe:80" {
		t.Errorf("got %q", got)
	}
}

// What logs say leads to the kind of cause, and what is said every day to none.
func TestSpeaks(t *testing.T) {
	for line, want := range map[string]kind{
		`FTL > Failed to initialize error="count geo: (Unauthorized) not authorized on geo-db to execute command`:               loginRefused,
		`"msg":"Authentication failed","attr":{"error":"UserNotFound: Could not find user \"admin\" for db \"admin\""}`:         loginRefused,
		`"msg":"Authentication succeeded","attr":{"mechanism":"SCRAM-SHA-256"}`:                                                 0,
		`"msg":"SSL handshake failed","attr":{"error":"The server is configured to only allow SSL connections"}`:                tlsRequired,
		`"c":"STORAGE","msg":"WiredTiger error","attr":{"error":5,"message":"write: Input/output error"}`:                       diskFailing,
		`dial tcp 10.96.1.2:27017: connect: cannot allocate memory`:                                                             kernelFailing,
		`[WARN] ["connection authentication failed"] [user=] ["error=io.ReadFull(header) failed. err EOF: connection was bad"]`: 0,
		`dial tcp 10.96.1.2:27017: i/o timeout`:                                                                                 0,
		`Failed to connect to MongoDB, try again error="dial tcp 10.96.241.251:27017: connect: connection refused"`:             0,
		`max retries exhausted: failed after 3 attempts: rpc error: code = Unavailable desc = no children to pick from`:         0,
	} {
		s := newSystem("n")
		s.note("a", line)
		got := kind(0)
		if list := s.spoken(); len(list) > 0 {
			got = list[0].kind
		}
		if got != want {
			t.Errorf("%s: kind %d, want %d", line, got, want)
		}
	}
}

func TestLasting(t *testing.T) {
	before := []sample{{httpLatency, "a", 2}}
	now := []sample{{httpLatency, "a", 3}, {httpLatency, "b", 3}, {rpcLatency, "a", 3}, {httpErrors, "b", 0.5}}
	if got, want := lasting(now, before), []sample{{httpLatency, "a", 3}, {httpErrors, "b", 0.5}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What the agent says is what it saw.
func TestWords(t *testing.T) {
	const header = "STATE    ALERT            SEVERITY  ABOUT    FOR  SUMMARY\n"
	for _, tt := range []struct{ got, want string }{
		{aboutAlerts("There are no alerts about n.\n"), "There is no alert."},
		{aboutAlerts(header + "pending  KubePodNotReady  warning   pod=a-1  5s   not ready\n"), "No alert is firing yet; about to is KubePodNotReady (pod=a-1)."},
		{aboutAlerts(header + "firing   KubePodNotReady  warning   pod=a-1  70s  not ready\n"), "An alert is firing: KubePodNotReady (pod=a-1)."},
		{sample{"http-errors", "frontend", 0.34}.words(), "34 % of the HTTP requests to frontend fail"},
		{sample{"rpc-p95", "search", 4.46}.words(), "one in twenty requests to search takes more than 4.5 s"},
		{sample{"memory", "geo-1", 0.97}.words(), "97 % of the memory limit of geo-1 is used"},
		{aboutProbes(readProbes("a.n:80 0 1\na.n:80 0 1\n10.0.0.1:80 0 1\n")), "Every port can be reached."},
		{
			aboutProbes(readProbes("consul.n:8300 1 0\nconsul.n:8300 1 0\nconsul.n:8500 0 1\n")),
			"Every service can be reached, though not by each of its ports: consul:8300 refuses connections.",
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
