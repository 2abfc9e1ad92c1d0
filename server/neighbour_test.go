package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Whoever sends a request from this machine, as this user, may be an agent that nobody confines; who is elsewhere, or
// somebody else, is not.
func TestNeighbour(t *testing.T) {
	var got []bool
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, neighbour(r)) }))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(got) != 1 || !got[0] {
		t.Errorf("a request of this process: %v", got)
	}
	for address, want := range map[string]bool{"192.0.2.7:4711": false, "[2001:db8::1]:80": false, "127.0.0.1:1": true, "nonsense": true} {
		if got := neighbour(&http.Request{RemoteAddr: address}); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
