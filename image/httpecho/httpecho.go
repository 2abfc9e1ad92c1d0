// Package httpecho is the image hashicorp/http-echo: a web server that answers every request with
// one text. It is also the worked example of docs/images.md.
package httpecho

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Image is http-echo.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"hashicorp/http-echo"},
		Tags:       `latest|(0\.2|1\.0)(\.\d+)?`,
		Entrypoint: []string{"/http-echo"},
		User:       "65532:65532",
		Programs:   map[string]kit.Program{"/http-echo": Main},
		Memory:     4 << 20,
		Size:       6 << 20,
	}
}

// Main serves until it is told to stop.
func Main(ctx context.Context, env *kit.Env) error {
	flags := flag.NewFlagSet("http-echo", flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	listen := flags.String("listen", ":5678", "where to listen, as `ADDRESS`:PORT")
	text := flags.String("text", env.Getenv("ECHO_TEXT"), "what to answer with")
	status := flags.Int("status-code", http.StatusOK, "status to answer with")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(127)
	}
	if *text == "" {
		fmt.Fprintln(env.Stderr, "there is nothing to say: give it -text")
		return kit.Exit(127)
	}
	ln, err := env.Net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if env.CPU.Use(r.Context(), 100*time.Microsecond) != nil { // what a request costs
			return
		}
		w.WriteHeader(*status)
		fmt.Fprintln(w, *text)
	})}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	fmt.Fprintf(env.Stdout, "%s [INFO] server is listening on %s\n",
		time.Now().UTC().Format("2006/01/02 15:04:05"), *listen)
	return kit.IgnoreClosed(srv.Serve(ln))
}
