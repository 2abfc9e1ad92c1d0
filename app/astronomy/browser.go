package astronomy

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aiopslab/aiopslab/kit"
)

// Browsers tell how long their users wait, by spans that they send to where the page says. So pictures that come late
// can be seen, though every server is quick.

// telemetry is what a page says: under which name a browser sends spans, and where to.
type telemetry struct{ service, traces string }

// telemetryOf is what the environment of the frontend says.
func telemetryOf(env *kit.Env) telemetry {
	return telemetry{
		cmp.Or(env.Getenv("WEB_OTEL_SERVICE_NAME"), "frontend-web"),
		env.Getenv("PUBLIC_OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
	}
}

const (
	noTelemetry  = `<meta name="otel">`
	telemetryTag = `<meta name="otel" data-service="%s" data-traces="%s">`
)

// in is a page with this in it.
func (t telemetry) in(page string) string {
	tag := strings.Replace(telemetryTag, "%s", html.EscapeString(t.service), 1)
	return strings.Replace(page, noTelemetry, strings.Replace(tag, "%s", html.EscapeString(t.traces), 1), 1)
}

var said = regexp.MustCompile(strings.ReplaceAll(telemetryTag, "%s", `([^"]*)`))

// readTelemetry is what a page says.
func readTelemetry(page []byte) (t telemetry) {
	if m := said.FindSubmatch(page); m != nil {
		t = telemetry{html.UnescapeString(string(m[1])), html.UnescapeString(string(m[2]))}
	}
	return t
}

// browser opens one page, and notes what its user waits for.
type browser struct {
	u      *shopper
	waited []wait
}

type wait struct {
	name       string
	begin, end time.Time
	failed     bool
}

// load asks for a page, or for something on it.
func (b *browser) load(ctx context.Context, what, name, path string, header ...string) ([]byte, error) {
	begin := time.Now()
	body, err := b.u.g.send(ctx, http.MethodGet, name, path, nil, header...)
	b.waited = append(b.waited, wait{what, begin, time.Now(), err != nil})
	return body, err
}

// tell sends the spans as the page's own script does: to the path that the page names, of the host that it came from.
// Nobody at a browser sees whether they arrive.
func (b *browser) tell(ctx context.Context, t telemetry) {
	at, err := url.Parse(t.traces)
	above := trace.SpanContextFromContext(ctx)
	if err != nil || t.traces == "" || !above.IsSampled() {
		return
	}
	spans := make([]any, len(b.waited))
	for i, w := range b.waited {
		code := 0
		if w.failed {
			code = 2
		}
		spans[i] = map[string]any{
			"traceId": above.TraceID().String(), "parentSpanId": above.SpanID().String(),
			"spanId": fmt.Sprintf("%016x", rand.Uint64()), "name": w.name, "kind": 3, // a client's
			"startTimeUnixNano": strconv.FormatInt(w.begin.UnixNano(), 10),
			"endTimeUnixNano":   strconv.FormatInt(w.end.UnixNano(), 10), "status": map[string]int{"code": code},
		}
	}
	_ = call(ctx, b.u.g.plain, b.u.g.host+at.Path, map[string]any{"resourceSpans": []any{map[string]any{
		"resource": map[string]any{"attributes": []any{
			map[string]any{"key": "service.name", "value": map[string]string{"stringValue": t.service}},
		}},
		"scopeSpans": []any{map[string]any{"spans": spans}},
	}}}, nil)
}
