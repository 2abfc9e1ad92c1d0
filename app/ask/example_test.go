package ask_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/aiopslab/aiopslab/app/ask"
)

// A question is asked on a new connection. Its error says what is wrong with the answer.
func ExamplePage() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "closed")
	}))
	defer shop.Close()
	question := ask.Page("/", func(status int, body []byte) error {
		if string(body) != "open" {
			return ask.Wrong("%q, not that it is open", body)
		}
		return nil
	})
	var d net.Dialer
	fmt.Println(question(context.Background(), d.DialContext, shop.Listener.Addr().String()))
	// Output:
	// it answers "closed", not that it is open
}
