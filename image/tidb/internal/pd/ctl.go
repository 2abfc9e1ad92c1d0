package pd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

// Ctl is pd-ctl: it asks PD and prints what it answers.
func Ctl(ctx context.Context, env *kit.Env) error {
	f := pflag.NewFlagSet("pd-ctl", pflag.ContinueOnError)
	f.SetOutput(env.Stderr)
	pd := f.StringP("pd", "u", fmt.Sprintf("http://127.0.0.1:%d", ClientPort), "address of PD")
	if err := f.Parse(env.Args[1:]); err != nil {
		return kit.Exit(1)
	}
	method, path := route(f.Args())
	if path == "" {
		fmt.Fprint(env.Stderr, ctlUsage)
		return kit.Exit(1)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address := strings.TrimRight(*pd, "/")
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	req, err := http.NewRequestWithContext(ctx, method, address+path, nil)
	if err != nil {
		return err
	}
	transport := env.HTTPTransport()
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("failed to connect to PD: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		fmt.Fprintf(env.Stdout, "Failed: [%d] %s\n", resp.StatusCode, strings.TrimSpace(string(b)))
		return kit.Exit(1)
	}
	_, err = env.Stdout.Write(b)
	return err
}

// route is the request that a command stands for.
func route(args []string) (method, path string) {
	const api = "/pd/api/v1/"
	switch line := strings.Join(args, " "); {
	case line == "member":
		return http.MethodGet, api + "members"
	case line == "member leader show":
		return http.MethodGet, api + "leader"
	case len(args) == 4 && strings.HasPrefix(line, "member delete name "):
		return http.MethodDelete, api + "members/name/" + args[3]
	case line == "health":
		return http.MethodGet, api + "health"
	case line == "store" || line == "stores":
		return http.MethodGet, api + "stores"
	case len(args) == 2 && args[0] == "store":
		return http.MethodGet, api + "store/" + args[1]
	case len(args) == 3 && strings.HasPrefix(line, "store delete "):
		return http.MethodDelete, api + "store/" + args[2]
	case line == "region":
		return http.MethodGet, api + "regions"
	case line == "cluster":
		return http.MethodGet, api + "cluster"
	case line == "cluster status":
		return http.MethodGet, api + "cluster/status"
	}
	return "", ""
}

const ctlUsage = `Usage: pd-ctl [-u ADDRESS] COMMAND
Commands:
  member                     the members of PD and the leader
  member leader show         the leader
  member delete name NAME    remove a member
  health                     which members answer
  store                      the stores
  store ID                   one store
  store delete ID            move everything off a store
  region                     the regions
  cluster                    the cluster
  cluster status             whether the cluster was set up
`
