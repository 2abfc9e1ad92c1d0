package app_test

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
)

const shop = "../examples/shop"

func TestReadDir(t *testing.T) {
	list, err := app.ReadDirs("../examples/shop", []*app.App{hotel.App()})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d applications, %v", len(list), err)
	}
	a := list[0]
	if s, ok := a.Service("front"); !ok || a.Host() != "front.test-corner-shop:80" || strings.Join(s.Calls, " ") != "catalog prices" || a.Mix != "corner-shop" {
		t.Errorf("got %+v", a)
	}
}

// An application can be handed over, whatever becomes of its directory, and asks the same there.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(shop)); err != nil {
		t.Fatal(err)
	}
	first, err := app.ReadDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	a, err := app.Unpack(dir, first.Archive, nil)
	if err != nil || a.Name != first.Name || len(a.Services) != len(first.Services) {
		t.Fatalf("%+v, %v", a, err)
	}
	if files, err := fs.Glob(a.Manifests, "*.yaml"); len(files) != 3 || err != nil {
		t.Errorf("its manifests are %v, %v", files, err)
	}
	if files, err := fs.Glob(a.Mixes, "*.yaml"); len(files) != 1 || err != nil {
		t.Errorf("its mixes are %v, %v", files, err)
	}
	if _, err := app.Unpack(dir, []byte("no archive"), nil); err == nil {
		t.Error("anything is an archive")
	}
	prices, _ := a.Service("prices")
	for body, right := range map[string]bool{`{"apple": 0.5, "bread": 2.2, "candle": 4}`: true, "hello": false, "": false} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		err := prices.Ask(t.Context(), new(net.Dialer).DialContext, web.Listener.Addr().String())
		web.Close()
		if (err == nil) != right {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Where nobody knows what a service answers, any page will do that is no error, or that somebody is there.
func TestWeakQuestions(t *testing.T) {
	for _, tt := range []struct {
		ask    string
		status int
		right  bool
	}{
		{"{http: /, any: true}", 204, true},
		{"{http: /, any: true}", 301, true},
		{"{http: /, any: true}", 404, false},
		{"{http: /, any: true}", 503, false},
		{"{tcp: true}", 503, true},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(shop)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "app.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc := strings.Replace(string(text), `{http: /, answer: '"candle": 4'}`, tt.ask, 1)
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := app.ReadDir(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		prices, _ := a.Service("prices")
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) }))
		address := web.Listener.Addr().String()
		if err := prices.Ask(t.Context(), new(net.Dialer).DialContext, address); (err == nil) != tt.right {
			t.Errorf("%s, %d: %v", tt.ask, tt.status, err)
		}
		web.Close()
		if err := prices.Ask(t.Context(), new(net.Dialer).DialContext, address); err == nil {
			t.Errorf("%s: nobody is there, and it is taken for well", tt.ask)
		}
	}
}

// Everything that is wrong with a description is said, with its line.
func TestReadDirErrors(t *testing.T) {
	good, err := os.ReadFile(filepath.Join(shop, "app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"field", "title:", "titel:", `:3: unknown field "titel"; did you mean "title"?`},
		{"missing", "title: Corner Shop\n", "", ": title is missing"},
		{"heard", "label: app", "heard: [\"/find?q=words\"]\nlabel: app", `:11: heard: "/find?q=words": want a path with {words} for what a user says, as /search?q={words}`},
		{"name", "name: corner-shop\n", "name: Corner Shop\n", `:2: name "Corner Shop": want small letters, digits and '-'`},
		{"taken", "name: corner-shop\n", "name: hotel-reservation\n", `:2: name: there is an application "hotel-reservation" already; take another name`},
		{"namespace", "test-corner-shop", "kube-system", ":4: namespace kube-system is the cluster's; take one of the application's own, such as test-corner-shop"},
		{"taken namespace", "test-corner-shop", "test-hotel-reservation", ":4: namespace: test-hotel-reservation is that of the application hotel-reservation; take another"},
		{"frontend", "service: front,", "service: frnt,", `:10: frontend: in manifests there is no Service "frnt"; did you mean "front"?`},
		{"port", "port: 80", "port: 81", ":10: frontend: the Service front has no port 81; it has 80"},
		{"label", "label: app ", "label: name ", `:11: label: the pods of catalog have name=""; want name=catalog`},
		{"kind", "name: prices, kind: service", "name: prices, kind: sevice", `:16: services: prices: there is no kind "sevice"; did you mean "service"?`},
		{"calls", "[catalog, prices]", "[catalog, price]", `:14: services: front calls: there is no service "price"; did you mean "prices"?`},
		{"deployment", "name: prices, kind", "name: pricess, kind", `:14: services: front calls: there is no service "prices"; did you mean "pricess"?`},
		{"left out", "- {name: prices, kind: service, ask: {http: /, answer: '\"candle\": 4'}}\n", "", ":13: services: the Deployment prices is not among them"},
		{"no question", `, ask: {http: /, answer: '"candle": 4'}`, "", ":16: services: prices: ask is missing: what only it can answer, such as {http: /, answer: a regular expression}"},
		{"any answer", `'"candle": 4'`, ".*", `:16: services: prices: ask: answer ".*" takes an empty page; want a text that only prices answers with`},
		{"no answer", `, answer: '"candle": 4'`, "", `:16: services: prices: ask: answer "" takes an empty page; want a text that only prices answers with`},
		{"no expression", `'"candle": 4'`, "'('", ":16: services: prices: ask: answer: error parsing regexp: missing closing ): `(`"},
		{"no path", `{http: /, answer: '"candle`, `{http: x, answer: '"candle`, `:16: services: prices: ask: http "x": want a path, such as /`},
		{"two questions", `answer: '"candle": 4'`, "grpc: Prices", ":16: services: prices: ask: want one of http, a path, grpc, the name of a service, and tcp: true"},
		{"any and answer", `answer: '"candle": 4'`, `answer: x, any: true`, ":16: services: prices: ask: any and answer exclude each other"},
		{"any of TCP", `http: /, answer: '"candle": 4'`, `tcp: true, any: true`, ":16: services: prices: ask: answer and any are for http"},
		{"store's question", "name: prices, kind: service", "name: prices, kind: redis", ":16: services: prices: leave out ask: a server of kind redis is asked in its own protocol"},
		{"asked elsewhere", "name: prices, kind: service", "name: prices, kind: service, port: 80", ":16: services: the Service prices has no port 80; it has 5678"},
		{"twice", "- {name: prices", "- {name: catalog, kind: infrastructure}\n- {name: prices", ":16: services: catalog is there twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(shop)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "app.yaml")
			doc := strings.Replace(string(good), tt.old, tt.new, 1)
			if doc == string(good) {
				t.Fatalf("no %q in the description", tt.old)
			}
			if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := app.ReadDir(dir, []*app.App{hotel.App()})
			if err == nil || !strings.Contains("\n"+err.Error()+"\n", "\n"+file+tt.want+"\n") {
				t.Errorf("got  %v\nwant %s%s", err, file, tt.want)
			}
		})
	}
	if _, err := app.ReadDirs(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "there is no app.yaml in it") {
		t.Errorf("got %v", err)
	}
}
