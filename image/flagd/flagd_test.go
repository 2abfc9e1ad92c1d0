package flagd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/evaluation/v1/evaluationv1grpc"
	evaluation "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/evaluation/v1"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// A server waits for half a second after it has refused the rest of a request.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const file = "/etc/flagd/demo.flagd.json"

// demo is a file with a flag of each kind.
const demo = `{"$schema": "https://flagd.dev/schema/v0/flags.json", "flags": {
	"cartFailure": {"description": "Fail to empty the cart", "state": "ENABLED", "variants": {"on": true, "off": false},
		"defaultVariant": "off"},
	"paymentFailure": {"state": "ENABLED", "variants": {"100%": 1, "50%": 0.5, "off": 0}, "defaultVariant": "50%"},
	"colour": {"state": "ENABLED", "variants": {"r": "red", "b": "blue"}, "defaultVariant": "r",
		"targeting": {"if": [{"==": [{"var": "user"}, "ann"]}, "b", "r"]}},
	"box": {"state": "ENABLED", "variants": {"small": {"w": 1}}, "defaultVariant": "small"},
	"old": {"state": "DISABLED", "variants": {"on": true}, "defaultVariant": "on"}
}}`

// start runs flagd on a machine, as the shop's manifest does.
func start(t testing.TB, content string) (*kittest.Machine, *kittest.Run) {
	t.Helper()
	m := kittest.New(t).Machine("flagd", "10.244.0.2")
	m.Install(Image(nil))
	m.Write(file, content)
	r := m.Start(Main, "/flagd-build", "start", "--port", "8013", "--ofrep-port", "8016", "--uri", "file:./etc/flagd/demo.flagd.json")
	r.Await("metrics and probes listening")
	return m, r
}

func dial(t testing.TB, m *kittest.Machine) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///flagd:8013", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) {
			return m.Env().Net.DialContext(ctx, "tcp", a)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestGRPC(t *testing.T) {
	m, _ := start(t, demo)
	conn := dial(t, m)
	c, ctx := evaluationv1grpc.NewServiceClient(conn), t.Context()
	b, err := c.ResolveBoolean(ctx, &evaluation.ResolveBooleanRequest{FlagKey: "cartFailure"})
	if err != nil || b.GetValue() || b.GetVariant() != "off" || b.GetReason() != "STATIC" {
		t.Errorf("%v, %v", b, err)
	}
	f, err := c.ResolveFloat(ctx, &evaluation.ResolveFloatRequest{FlagKey: "paymentFailure"})
	if err != nil || f.GetValue() != 0.5 || f.GetVariant() != "50%" {
		t.Errorf("%v, %v", f, err)
	}
	i, err := c.ResolveInt(ctx, &evaluation.ResolveIntRequest{FlagKey: "paymentFailure"})
	if err != nil || i.GetValue() != 0 {
		t.Errorf("%v, %v", i, err)
	}
	who, _ := structpb.NewStruct(map[string]any{"user": "ann"})
	s, err := c.ResolveString(ctx, &evaluation.ResolveStringRequest{FlagKey: "colour", Context: who})
	if err != nil || s.GetValue() != "blue" || s.GetReason() != "TARGETING_MATCH" {
		t.Errorf("%v, %v", s, err)
	}
	o, err := c.ResolveObject(ctx, &evaluation.ResolveObjectRequest{FlagKey: "box"})
	if err != nil || o.GetValue().AsMap()["w"] != 1.0 {
		t.Errorf("%v, %v", o, err)
	}
	all, err := c.ResolveAll(ctx, &evaluation.ResolveAllRequest{})
	if err != nil || len(all.GetFlags()) != 4 || all.GetFlags()["colour"].GetStringValue() != "red" {
		t.Errorf("%v, %v", all, err)
	}
	for key, want := range map[string]codes.Code{"none": codes.NotFound, "old": codes.NotFound, "colour": codes.InvalidArgument} {
		if _, err := c.ResolveBoolean(ctx, &evaluation.ResolveBooleanRequest{FlagKey: key}); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
	long, _ := structpb.NewStruct(map[string]any{"user": strings.Repeat("a", maxRequest)})
	_, err = c.ResolveString(ctx, &evaluation.ResolveStringRequest{FlagKey: "colour", Context: long})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a long context: %v", err)
	}

	// The older service has the same messages on the wire.
	var old evaluation.ResolveFloatResponse
	q := &evaluation.ResolveFloatRequest{FlagKey: "paymentFailure"}
	if err := conn.Invoke(ctx, "/schema.v1.Service/ResolveFloat", q, &old); err != nil || old.GetValue() != 0.5 {
		t.Errorf("%v, %v", &old, err)
	}
}

func TestConnectJSON(t *testing.T) {
	m, _ := start(t, demo)
	const base = "http://flagd:8013/flagd.evaluation.v1.Service/"
	tests := []struct {
		name, url, body, kind string
		code                  int
		want                  string
	}{
		{
			"a number", base + "ResolveFloat", `{"flagKey":"paymentFailure","context":{}}`, "application/json", 200,
			`{"value":0.5,"reason":"STATIC","variant":"50%","metadata":{}}`,
		},
		{
			"false is told", base + "ResolveBoolean", `{"flagKey":"cartFailure","new":1}`, "application/json; charset=utf-8", 200,
			`{"value":false,"reason":"STATIC","variant":"off","metadata":{}}`,
		},
		{
			"the older name", "http://flagd:8013/schema.v1.Service/ResolveString", `{"flagKey":"colour","context":{"user":"ann"}}`,
			"application/json", 200, `{"value":"blue","reason":"TARGETING_MATCH","variant":"b","metadata":{}}`,
		},
		{
			"no flag", base + "ResolveFloat", `{"flagKey":"none"}`, "application/json", 404,
			`{"code":"not_found","message":"Flag not found"}`,
		},
		{
			"another type", base + "ResolveFloat", `{"flagKey":"colour"}`, "application/json", 400,
			`{"code":"invalid_argument","message":"Type mismatch error"}`,
		},
		{"no JSON", base + "ResolveFloat", `{"flagKey"`, "application/json", 400, ""},
		{"no method", base + "Resolve", `{}`, "application/json", 501, ""},
		{"no service", "http://flagd:8013/other/Resolve", `{}`, "application/json", 404, ""},
		{"another encoding", base + "ResolveFloat", `{}`, "text/plain", 415, ""},
		{"too much", base + "ResolveFloat", strings.Repeat(" ", maxRequest+1), "application/json", 429, ""},
		{
			"deep", base + "ResolveFloat", `{"context":` + strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2001),
			"application/json", 400, "",
		},
	}
	for _, tt := range tests {
		got := kittest.Ask(t, m, "POST", tt.url, tt.body, "Content-Type: "+tt.kind)
		if got.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, got.Code, got.Body, tt.code)
		}
		if tt.want != "" && !sameJSON(t, got.Body, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got.Body, tt.want)
		}
	}
	if got := kittest.Get(t, m, base+"ResolveFloat"); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", got.Code)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return cmp.Equal(x, y)
}

func TestOFREP(t *testing.T) {
	m, _ := start(t, demo)
	const base = "http://flagd:8016/ofrep/v1/evaluate/flags"
	tests := []struct {
		name, url, body string
		code            int
		want            string
	}{
		{
			"a flag", base + "/cartFailure", `{"context":{}}`, 200,
			`{"value":false,"key":"cartFailure","reason":"STATIC","variant":"off","metadata":{}}`,
		},
		{
			"without a body", base + "/paymentFailure", "", 200,
			`{"value":0.5,"key":"paymentFailure","reason":"STATIC","variant":"50%","metadata":{}}`,
		},
		{
			"a rule", base + "/colour", `{"context":{"user":"ann"}}`, 200,
			`{"value":"blue","key":"colour","reason":"TARGETING_MATCH","variant":"b","metadata":{}}`,
		},
		{
			"unknown", base + "/none", `{}`, 404,
			"{\"key\":\"none\",\"errorCode\":\"FLAG_NOT_FOUND\",\"errorDetails\":\"flag `none` does not exist\",\"metadata\":{}}",
		},
		{
			"disabled", base + "/old", `{}`, 404,
			"{\"key\":\"old\",\"errorCode\":\"FLAG_DISABLED\",\"errorDetails\":\"flag `old` is disabled\",\"metadata\":{}}",
		},
		{
			"no context", base + "/colour", `{"context":[]}`, 400,
			`{"key":"colour","errorCode":"INVALID_CONTEXT","errorDetails":"Provider context is not valid","metadata":null}`,
		},
	}
	for _, tt := range tests {
		got := kittest.Ask(t, m, "POST", tt.url, tt.body)
		if got.Code != tt.code || !sameJSON(t, got.Body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, got.Code, got.Body, tt.code, tt.want)
		}
	}
	all := kittest.Ask(t, m, "POST", base, `{"context":{}}`)
	var body struct{ Flags []map[string]any }
	if err := json.Unmarshal([]byte(all.Body), &body); err != nil || len(body.Flags) != 5 {
		t.Errorf("all: %d %s", all.Code, all.Body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := kittest.Get(t, m, "http://flagd:8014"+path); got.Code != 200 {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	want := `feature_flag_flagd_impression_total{feature_flag_key="colour",feature_flag_reason="TARGETING_MATCH",feature_flag_variant="b"} 1`
	if got := kittest.Get(t, m, "http://flagd:8014/metrics").Body; !strings.Contains(got, want) || strings.Contains(got, `"none"`) {
		t.Errorf("metrics:\n%s", got)
	}
}

// TestReload has a listener see a change, a file that is refused, its end, and the end of the daemon.
func TestReload(t *testing.T) {
	m, run := start(t, demo)
	c := evaluationv1grpc.NewServiceClient(dial(t, m))
	stream, err := c.EventStream(t.Context(), &evaluation.EventStreamRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(kind string) map[string]any {
		t.Helper()
		e, err := stream.Recv()
		if err != nil || e.GetType() != kind {
			t.Fatalf("%v, %v, want %s", e, err, kind)
		}
		return e.GetData().AsMap()
	}
	value := func() (bool, error) {
		b, err := c.ResolveBoolean(t.Context(), &evaluation.ResolveBooleanRequest{FlagKey: "cartFailure"})
		return b.GetValue(), err
	}
	next("provider_ready")
	m.Write(file, strings.Replace(demo, `"defaultVariant": "off"}`, `"defaultVariant": "on"}`, 1))
	want := map[string]any{"flags": map[string]any{"cartFailure": map[string]any{"type": "update"}}}
	if diff := cmp.Diff(want, next("configuration_change")); diff != "" {
		t.Error(diff)
	}
	if on, err := value(); !on || err != nil {
		t.Errorf("%v, %v", on, err)
	}
	m.Write(file, strings.Replace(demo, `"defaultVariant": "r"`, `"defaultVariant": "green"`, 1))
	run.Await("default variant: 'green' isn't a valid variant of flag: 'colour'")
	if on, err := value(); !on || err != nil {
		t.Errorf("after a bad file: %v, %v", on, err)
	}
	if err := m.Env().FS.Remove(file); err != nil {
		t.Fatal(err)
	}
	next("configuration_change")
	if _, err := value(); status.Code(err) != codes.NotFound {
		t.Errorf("without the file: %v", err)
	}
	run.Signal(syscall.SIGTERM)
	next("provider_shutdown")
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("the stream ends with %v", err)
	}
	if code := run.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestBadFileAtStart has no flags, but runs.
func TestBadFileAtStart(t *testing.T) {
	m, run := start(t, strings.Replace(demo, `"defaultVariant": "off"}`, `"defaultVariant": "10%"}`, 1))
	run.Await("isn't a valid variant of flag: 'cartFailure'")
	got := kittest.Ask(t, m, "POST", "http://flagd:8016/ofrep/v1/evaluate/flags/paymentFailure", "{}")
	if got.Code != http.StatusNotFound {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// TestConnectStream reads events as a browser does.
func TestConnectStream(t *testing.T) {
	m, _ := start(t, demo)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "POST", "http://flagd:8013/flagd.evaluation.v1.Service/EventStream",
		bytes.NewReader([]byte{0, 0, 0, 0, 2, '{', '}'}))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/connect+json")
	resp, err := m.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"provider_ready", "configuration_change"} {
		head := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, head); err != nil {
			t.Fatal(err)
		}
		data := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(resp.Body, data); err != nil || !strings.Contains(string(data), want) {
			t.Fatalf("%s, %v, want %s", data, err, want)
		}
		m.Write(file, strings.Replace(demo, `"defaultVariant": "off"}`, `"defaultVariant": "on"}`, 1))
	}
}

func TestManyListeners(t *testing.T) {
	m, _ := start(t, demo)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	refused := 0
	for range 4 {
		c := evaluationv1grpc.NewServiceClient(dial(t, m))
		for range 80 {
			s, err := c.EventStream(ctx, &evaluation.EventStreamRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); status.Code(err) == codes.ResourceExhausted {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused != 4*80-maxListeners {
		t.Errorf("%d were refused", refused)
	}
}

func TestCommandLine(t *testing.T) {
	m := kittest.New(t).Machine("flagd", "10.244.0.2")
	tests := []struct {
		args string
		code int
		want string
	}{
		{"", 0, "Available Commands"},
		{"version", 0, "flagd v0.12.9"},
		{"stop", 1, "unknown command"},
		{"start --help", 0, "--uri"},
		{"start", 1, "use --uri file:PATH"},
		{"start --uri http://x/flags", 1, "only files"},
		{"start --uri file:/nosuch", 1, "no such file"},
		{"start --uri file:/a --uri file:/a", 1, "given twice"},
		{"start --sources [{\"uri\":\"grpc://x\",\"provider\":\"grpc\"}]", 1, "only file"},
		{"start --port x", 1, "invalid argument"},
		{"start --log-format xml --uri file:/a", 1, "console or json"},
		{"start more --uri file:/a", 1, "not a flag"},
	}
	for _, tt := range tests {
		env := m.Env(append([]string{"/flagd-build"}, strings.Fields(tt.args)...)...)
		out := &kittest.Buffer{}
		env.Stdout, env.Stderr = out, out
		if code := kit.Run(t.Context(), Main, env); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: exit %d\n%s", tt.args, code, out)
		}
	}
	env := m.Env("/flagd-build", "start")
	env.Vars["FLAGD_URI"], env.Vars["FLAGD_PORT"] = "file:/a", "9000"
	var s settings
	if err := s.read(env, nil); err != nil || s.port != 9000 || s.files[0] != "/a" {
		t.Errorf("%+v, %v", s, err)
	}
	// What the command line says makes variables that Kubernetes adds for a Service of this name harmless.
	env.Vars["FLAGD_PORT"] = "tcp://10.96.1.2:8013"
	s = settings{}
	if err := s.read(env, []string{"--port", "8013"}); err != nil || s.port != 8013 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestCheck(t *testing.T) {
	rule := func(r string) string {
		return `{"flags":{"a":{"state":"ENABLED","variants":{"on":true},"defaultVariant":"on","targeting":` + r + `}}}`
	}
	for name, tt := range map[string]struct{ content, want string }{
		"fine":        {demo, ""},
		"no flags":    {`{}`, "has no flags"},
		"null":        {`null`, "has no flags"},
		"no JSON":     {`flags:`, "not JSON"},
		"a number":    {`{"flags":1}`, "no flags"},
		"large":       {strings.Repeat(" ", maxFile+1), "at most"},
		"deep":        {rule(strings.Repeat(`{"!":[`, 100) + "1" + strings.Repeat("]}", 100)), "deep"},
		"a long rule": {rule(`"` + strings.Repeat("a", maxRule) + `"`), "at most"},
		"a loop":      {rule(`{"if":[{"map":[{"var":"x"},{"var":""}]},"on","on"]}`), `"map"`},
		"evaluators":  {`{"$evaluators":{"a":{"==":[1,1]}},"flags":{}}`, "$evaluators"},
	} {
		if err := check([]byte(tt.content)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestUI(t *testing.T) {
	m := kittest.New(t).Machine("flagd", "10.244.0.2")
	m.Install(UI(nil))
	m.Write("/app/data/demo.flagd.json", demo)
	m.Start(UIMain, "/app/bin/server").Await("Running")
	if got := kittest.Get(t, m, "http://flagd:4000/api/read"); got.Code != 200 || got.Body != demo {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	changed := strings.Replace(demo, `"defaultVariant": "off"}`, `"defaultVariant": "on"}`, 1)
	for _, url := range []string{"http://flagd:4000/api/write", "http://flagd:4000/feature/api/write"} {
		if got := kittest.Ask(t, m, "POST", url, `{"data":`+changed+`}`); got.Code != 200 {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		if got := m.Read("/app/data/demo.flagd.json"); !sameJSON(t, got, changed) {
			t.Errorf("%s", got)
		}
	}
	for _, body := range []string{"", "{}", `{"data":1}`, `{"data":{}}`, `{"data":{"flags":[]}}`, strings.Repeat("[", 10000), strings.Repeat(" ", maxFile+1)} {
		if got := kittest.Ask(t, m, "POST", "http://flagd:4000/api/write", body); got.Code != http.StatusBadRequest {
			t.Errorf("%.20q: %d", body, got.Code)
		}
	}
	for _, path := range []string{"/", "/feature/"} {
		if got := kittest.Get(t, m, "http://flagd:4000"+path); got.Code != 200 || !strings.Contains(got.Body, "Feature flags") {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	if got := kittest.Get(t, m, "http://flagd:4000/feature"); got.Header.Get("Location") != "/feature/" {
		t.Errorf("%d", got.Code)
	}
	if err := m.Env().FS.Remove("/app/data/demo.flagd.json"); err != nil {
		t.Fatal(err)
	}
	if got := kittest.Get(t, m, "http://flagd:4000/api/read"); got.Code != http.StatusInternalServerError {
		t.Errorf("%d", got.Code)
	}
}

// FuzzFlags has whatever is in a file, and in a context, end no process.
func FuzzFlags(f *testing.F) {
	for _, rule := range []string{
		`{"if":[{"==":[{"var":"user"},"ann"]},"b","r"]}`, `{"fractional":[{"var":"user"},["r",50],["b",50]]}`,
		`{"fractional":[["r",-1],["b"]]}`, `{"starts_with":[{"var":"user"},"a"]}`, `{"sem_ver":["1.0","~","x"]}`,
		`{"in":[{"var":"user"},[1]]}`, `{"substr":["abc",-9,99]}`, `{"%":[1,0]}`, `{"/":[1,0]}`, `{"var":[]}`, `{"if":[]}`,
	} {
		f.Add(`{"flags":{"colour":{"state":"ENABLED","variants":{"r":"red","b":"blue"},"defaultVariant":"r","targeting":`+
			rule+`}}}`, `{"context":{"user":"ann","targetingKey":"x"}}`)
	}
	flags, err := newFlags(&kit.Env{}, &journal{out: io.Discard}, nil, []string{"a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content, body string) {
		if flags.set("a", []byte(content)) != nil {
			return
		}
		q, _ := http.NewRequest("POST", "/", strings.NewReader(body))
		c, err := contextOf(nil, q)
		if err != nil {
			return
		}
		s := service{&daemon{flags: flags}}
		for key := range flags.all() {
			_ = guarded(func() error { return flags.eval.ResolveAsAnyValue(t.Context(), "", key, c).Error })
		}
		_, _, _ = s.all(t.Context(), c)
	})
}
