package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/app/hotel"
)

// Pages are opened at the ports they are known by or others, or at those that were asked for, all of
// them or none.
func TestPagesPorts(t *testing.T) {
	list, err := (&upFlags{expose: exposeAuto}).pages(hotel.App(), false)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printPages(&out, list)
	closePages(list)
	for _, want := range []string{"Hotel Reservation  http://127.0.0.1:", "Prometheus         http://127.0.0.1:", "Jaeger             http://127.0.0.1:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	beside, err := listenNear(port)
	if err != nil {
		t.Fatal(err)
	}
	beside.Close()
	list, err = (&upFlags{expose: strconv.Itoa(port - 1), exposeGiven: true}).pages(hotel.App(), true)
	if f, ok := errors.AsType[*failure](err); !ok || f.code != ExitEnvironment || list != nil {
		t.Errorf("a port that is taken: %v, %v", list, err)
	}
}

func TestPagesFlag(t *testing.T) {
	for _, c := range []struct {
		name    string
		flags   upFlags
		app     bool
		command bool
		code    int // of the error; 0 is none, and nothing is opened
	}{
		{"no application", upFlags{expose: exposeAuto}, false, false, 0},
		{"nothing to open", upFlags{expose: "8000", exposeGiven: true}, false, false, ExitUsage},
		{"a command that did not ask", upFlags{expose: exposeAuto}, true, true, 0},
		{"off", upFlags{expose: exposeOff, exposeGiven: true}, true, false, 0},
		{"a word", upFlags{expose: "yes", exposeGiven: true}, true, false, ExitUsage},
		{"zero", upFlags{expose: "0", exposeGiven: true}, true, false, ExitUsage},
		{"too high", upFlags{expose: "65536", exposeGiven: true}, true, false, ExitUsage},
		{"too high for all", upFlags{expose: "65535", exposeGiven: true}, true, false, ExitEnvironment},
		{"an address", upFlags{expose: "0.0.0.0:80", exposeGiven: true}, true, false, ExitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := hotel.App()
			if !c.app {
				a = nil
			}
			list, err := c.flags.pages(a, c.command)
			code := 0
			if f, ok := errors.AsType[*failure](err); ok {
				code = f.code
			}
			if code != c.code || len(list) > 0 {
				t.Errorf("%d pages, %v; want status %d", len(list), err, c.code)
			}
		})
	}
}

// Requests go through as they are, unless another web page is behind them.
func TestPagesHandler(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Host+r.RequestURI+" "+string(b)+r.Header.Get("Cookie"))
	}))
	defer inside.Close()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "shop.test:80" {
			return nil, errors.New("no such host")
		}
		return (&net.Dialer{}).DialContext(ctx, network, inside.Listener.Addr().String())
	}
	h := (&page{title: "Shop", host: "shop.test:80"}).handler(dial, nil)
	away := (&page{title: "Shop", host: "gone.test:80"}).handler(dial, nil)
	for _, c := range []struct {
		name    string
		handler http.Handler
		method  string
		host    string
		headers map[string]string
		status  int
		body    string
	}{
		{"as it is", h, "GET", "127.0.0.1:8000", nil, 200, "GET 127.0.0.1:8000/a%2Fb?c=d "},
		{"with a body", h, "POST", "localhost:8000", nil, 200, "POST localhost:8000/a%2Fb?c=d text"},
		{"a name of one's own", h, "GET", "evil.example", nil, 403, "for localhost alone"},
		{"no name", h, "GET", "", nil, 403, "for localhost alone"},
		{"a page of the web reads", h, "GET", "127.0.0.1:8000", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200, ""},
		{"a page of the web writes", h, "POST", "127.0.0.1:8000", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
		{"its own page writes", h, "POST", "127.0.0.1:8000", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200, ""},
		{"with cookies, of which some are the lab's", h, "GET", "127.0.0.1:8000", map[string]string{"Cookie": "a=1; aiopslab-0a1b2c3d=secret; b=2"}, 200, "d texta=1; b=2"},
		{"nobody is there", away, "GET", "127.0.0.1:8000", nil, 502, "Shop does not answer at gone.test:80: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "/a%2Fb?c=d", strings.NewReader("text"))
			r.Host = c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
		})
	}
}
