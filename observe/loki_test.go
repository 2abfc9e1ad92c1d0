package observe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lokiAt is an observer of a cluster with one pod, and of a Loki that answers as it is told.
func lokiAt(t *testing.T, answer http.HandlerFunc) *Observer {
	t.Helper()
	m := http.NewServeMux()
	m.HandleFunc("GET /logs/loki/api/v1/query_range", answer)
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	pods, err := json.Marshal(v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{
			Name: "odd.name", Namespace: "shop", Labels: map[string]string{"app": "geo"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := fake(t, reply(string(pods)))
	if err := o.Use(External{Loki: srv.URL + "/logs/"}); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLoki(t *testing.T) {
	o := lokiAt(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		want := `{namespace="shop",pod=~"geo|geo-[a-z0-9]{5,10}-[a-z0-9]{5}|geo-[0-9]+|odd\\.name"} |~ "(?i)no \"way\""`
		if got := q.Get("query"); got != want {
			t.Errorf("asked for %s\nwant      %s", got, want)
		}
		from, _ := strconv.ParseInt(q.Get("start"), 10, 64)
		to, _ := strconv.ParseInt(q.Get("end"), 10, 64)
		if from != at.Add(-lokiPast).UnixNano() || to != at.UnixNano() || q.Get("limit") != "5000" || q.Get("direction") != "backward" {
			t.Errorf("asked for %v", q)
		}
		line := func(before time.Duration, text string) string {
			return fmt.Sprintf(`["%d",%q]`, at.Add(-before).UnixNano(), text)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"streams","result":[
			{"stream":{"namespace":"shop","pod":"odd.name","container":"geo"},"values":[%s,%s]},
			{"stream":{"namespace":"shop","pod":"geo-5d8f-x","container":"geo","node_name":"n1"},"values":[%s]}
		]}}`, line(time.Second, `level=error no "way" out`), line(3*time.Second, `level=info no "way"`),
			line(2*time.Second, "ERROR no \"way\"\n"))
	})
	list, err := o.Logs(t.Context(), LogQuery{Namespace: "shop", Service: "geo", To: at, Level: "error", Text: `No "way"`})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range list {
		got = append(got, strings.Join([]string{l.Time.UTC().Format(time.TimeOnly), l.Pod, l.Container, l.Node, l.Level, l.Text}, "|"))
	}
	want := []string{
		at.Add(-2*time.Second).UTC().Format(time.TimeOnly) + `|geo-5d8f-x|geo|n1|error|ERROR no "way"`,
		at.Add(-time.Second).UTC().Format(time.TimeOnly) + `|odd.name|geo||error|level=error no "way" out`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An agent's words in a question are words, not a query.
func TestLokiQuotes(t *testing.T) {
	for _, service := range []string{`geo"} or {namespace="kube-system`, "geo|.*", "geo`"} {
		o := lokiAt(t, func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query().Get("query")
			m := regexp.MustCompile(`^\{namespace="shop",pod=~("(?:[^"\\]|\\.)*")\}$`).FindStringSubmatch(q)
			if m == nil {
				t.Fatalf("%s", q)
			}
			pattern, err := strconv.Unquote(m[1])
			if err != nil || regexp.MustCompile("^(?:"+pattern+")$").MatchString("till-0") {
				t.Errorf("%s: %v", pattern, err)
			}
			reply(`{"data":{"resultType":"streams","result":[]}}`)(w, r)
		})
		if _, err := o.Logs(t.Context(), LogQuery{Namespace: "shop", Service: service}); err != nil {
			t.Error(err)
		}
	}
}

func TestLokiFails(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"ask Loki: 400 Bad Request: parse error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "parse error\nmore", http.StatusBadRequest)
		},
		`ask Loki: the answer is "", not of streams`: reply(`{}`),
		`ask Loki: the time of a line is "now"`:      reply(`{"data":{"resultType":"streams","result":[{"values":[["now","x"]]}]}}`),
		"ask Loki: invalid character":                reply(`<html>`),
	} {
		_, err := lokiAt(t, answer).Logs(t.Context(), LogQuery{Namespace: "shop"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
