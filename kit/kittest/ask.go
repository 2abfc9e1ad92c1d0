package kittest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Answer is what a web server said.
type Answer struct {
	Code   int
	Body   string
	Header http.Header
}

// Get asks for a page from a machine.
func Get(t testing.TB, m *Machine, url string, headers ...string) Answer {
	t.Helper()
	return Ask(t, m, http.MethodGet, url, "", headers...)
}

// Ask sends a request from a machine. It does not follow redirections. A header is "Name: value".
func Ask(t testing.TB, m *Machine, method, url, body string, headers ...string) Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	c := m.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{resp.StatusCode, string(data), resp.Header}
}
