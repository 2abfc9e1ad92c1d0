package server_test

import (
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/server"
)

// The lab over HTTP is a handler.
func ExampleFront() {
	front := server.NewFront(server.Options{Library: &problem.Library{}, Agents: []string{"mine"}, Loopback: true})
	srv := httptest.NewServer(front)
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/health")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Print(string(body), resp.StatusCode, err)
	// Output:
	// {"status":"healthy","service":"AIOpsLab"}
	// 200 <nil>
}
