package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aiopslab/aiopslab/kit"
)

// Image is consul. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:      []string{"hashicorp/consul", "consul"},
		Tags:       `latest|1\.\d+(\.\d+)?`,
		Entrypoint: []string{"consul"},
		Cmd:        []string{"agent", "-dev", "-client", "0.0.0.0"},
		Vars:       map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Programs:   map[string]kit.Program{"/bin/consul": Main},
		Files: map[string]string{
			"/etc/passwd": "root:x:0:0:root:/root:/bin/ash\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n" +
				"consul:x:100:1000:Linux User,,,:/home/consul:/sbin/nologin\n",
			"/etc/group": "root:x:0:root\nnobody:x:65534:\nconsul:x:1000:consul\n",
		},
		Memory: 40 << 20,
		Size:   60 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}

const usage = `Usage: consul [--version] [--help] <command> [<args>]

Available commands are:
    agent      Runs a Consul agent
    catalog    Interact with the catalog
    info       Provides debugging information for operators.
    kv         Interact with the key-value store
    members    Lists the members of a Consul cluster
    services   Interact with services
    version    Prints the Consul version
`

// Main is the program consul: the agent, or a command that asks one.
func Main(ctx context.Context, env *kit.Env) error {
	args := env.Args[1:]
	if len(args) == 0 {
		fmt.Fprint(env.Stderr, usage)
		return kit.Exit(127)
	}
	c := &client{env: env, base: "http://127.0.0.1:8500"}
	if v := env.Getenv("CONSUL_HTTP_ADDR"); v != "" {
		c.base = "http://" + strings.TrimPrefix(v, "http://")
	}
	switch args[0] {
	case "agent":
		return runAgent(ctx, env, args[1:])
	case "version", "--version", "-v":
		fmt.Fprintf(env.Stdout, "Consul v%s\n", Version)
		return nil
	case "members":
		return c.members(ctx)
	case "info":
		return c.info(ctx)
	case "catalog":
		return c.catalog(ctx, args[1:])
	case "services":
		return c.services(ctx, args[1:])
	case "kv":
		return c.kv(ctx, args[1:])
	}
	fmt.Fprint(env.Stderr, usage)
	return kit.Exit(127)
}

func runAgent(ctx context.Context, env *kit.Env, args []string) error {
	flags := flag.NewFlagSet("consul agent", flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	dev := flags.Bool("dev", false, "development mode: one server, everything in memory")
	bind := flags.String("client", "127.0.0.1", "address of the HTTP and DNS servers")
	httpPort := flags.Int("http-port", 8500, "port of the HTTP API")
	dnsPort := flags.Int("dns-port", 8600, "port of the DNS server")
	for _, ignored := range []string{"ui", "server"} {
		flags.Bool(ignored, false, "accepted; the agent is a server without web pages")
	}
	for _, ignored := range []string{"bind", "bootstrap-expect", "data-dir", "node", "log-level"} {
		flags.String(ignored, "", "accepted and ignored in development mode")
	}
	if err := flags.Parse(args); err != nil {
		return kit.Exit(1)
	}
	if !*dev {
		fmt.Fprintln(env.Stderr, "==> data_dir cannot be empty: this agent runs in development mode only; use -dev")
		return kit.Exit(1)
	}
	env.Keep(kit.NotKept)
	return newAgent(env).run(ctx, *bind, *httpPort, *dnsPort)
}

// client is the command line's side of the HTTP API.
type client struct {
	env  *kit.Env
	base string
}

// call asks the agent and decodes its answer. A failure is printed.
func (c *client) call(ctx context.Context, method, path string, body []byte, v any) error {
	transport := c.env.HTTPTransport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return c.fail(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return c.fail(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.fail(err)
	}
	if resp.StatusCode != http.StatusOK {
		//lint:ignore ST1005 Consul's own words.
		return c.fail(fmt.Errorf("Unexpected response code: %d (%s)", resp.StatusCode, b))
	}
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			return c.fail(err)
		}
	}
	return nil
}

func (c *client) fail(err error) error {
	fmt.Fprintf(c.env.Stderr, "Error: %v\n", err)
	return kit.Exit(1)
}

func (c *client) table(rows ...[]string) {
	w := tabwriter.NewWriter(c.env.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush()
}

func (c *client) members(ctx context.Context) error {
	var list []struct {
		Name, Addr string
		Port       int
		Tags       map[string]string
	}
	if err := c.call(ctx, http.MethodGet, "/v1/agent/members", nil, &list); err != nil {
		return err
	}
	rows := [][]string{{"Node", "Address", "Status", "Type", "Build", "Protocol", "DC", "Partition", "Segment"}}
	for _, m := range list {
		rows = append(rows, []string{
			m.Name, fmt.Sprintf("%s:%d", m.Addr, m.Port), "alive", "server", m.Tags["build"],
			"2", m.Tags["dc"], "default", "<all>",
		})
	}
	c.table(rows...)
	return nil
}

func (c *client) info(ctx context.Context) error {
	var services, checks map[string]any
	if err := c.call(ctx, http.MethodGet, "/v1/agent/services", nil, &services); err != nil {
		return err
	}
	if err := c.call(ctx, http.MethodGet, "/v1/agent/checks", nil, &checks); err != nil {
		return err
	}
	fmt.Fprintf(c.env.Stdout, "agent:\n\tchecks = %d\n\tservices = %d\nbuild:\n\tversion = %s\nconsul:\n\tbootstrap "+
		"= false\n\tleader = true\n\tserver = true\n", len(checks), len(services), Version)
	return nil
}

func (c *client) catalog(ctx context.Context, args []string) error {
	switch strings.Join(args, " ") {
	case "services":
		var m map[string][]string
		if err := c.call(ctx, http.MethodGet, "/v1/catalog/services", nil, &m); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintln(c.env.Stdout, name)
		}
		return nil
	case "nodes":
		var list []struct{ ID, Node, Address, Datacenter string }
		if err := c.call(ctx, http.MethodGet, "/v1/catalog/nodes", nil, &list); err != nil {
			return err
		}
		rows := [][]string{{"Node", "ID", "Address", "DC"}}
		for _, n := range list {
			rows = append(rows, []string{n.Node, n.ID[:8], n.Address, n.Datacenter})
		}
		c.table(rows...)
		return nil
	case "datacenters":
		fmt.Fprintln(c.env.Stdout, datacenter)
		return nil
	}
	fmt.Fprintln(c.env.Stderr, "Usage: consul catalog <datacenters|nodes|services>")
	return kit.Exit(1)
}

func (c *client) services(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("consul services", flag.ContinueOnError)
	flags.SetOutput(c.env.Stderr)
	id := flags.String("id", "", "ID of the service")
	name := flags.String("name", "", "name of the service")
	address := flags.String("address", "", "address of the service")
	port := flags.Int("port", 0, "port of the service")
	if len(args) == 0 || (args[0] != "register" && args[0] != "deregister") {
		fmt.Fprintln(c.env.Stderr, "Usage: consul services <register|deregister> [-name NAME] [-id ID] [-address "+
			"ADDRESS] [-port PORT]")
		return kit.Exit(1)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return kit.Exit(1)
	}
	if args[0] == "deregister" {
		if err := c.call(ctx, http.MethodPut, "/v1/agent/service/deregister/"+url.PathEscape(*id), nil,
			nil); err != nil {
			return err
		}
		fmt.Fprintf(c.env.Stdout, "Deregistered service: %s\n", *id)
		return nil
	}
	b, err := json.Marshal(definition{ID: *id, Name: *name, Address: *address, Port: *port})
	if err != nil {
		return err
	}
	if err := c.call(ctx, http.MethodPut, "/v1/agent/service/register", b, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.env.Stdout, "Registered service: %s\n", *name)
	return nil
}

func (c *client) kv(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "get":
		var pairs []pair
		if err := c.call(ctx, http.MethodGet, "/v1/kv/"+args[1], nil, &pairs); err != nil {
			return err
		}
		fmt.Fprintf(c.env.Stdout, "%s\n", pairs[0].Value)
		return nil
	case len(args) == 3 && args[0] == "put":
		if err := c.call(ctx, http.MethodPut, "/v1/kv/"+args[1], []byte(args[2]), nil); err != nil {
			return err
		}
		fmt.Fprintf(c.env.Stdout, "Success! Data written to: %s\n", args[1])
		return nil
	case len(args) == 2 && args[0] == "delete":
		if err := c.call(ctx, http.MethodDelete, "/v1/kv/"+args[1], nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(c.env.Stdout, "Success! Deleted key: %s\n", args[1])
		return nil
	}
	fmt.Fprintln(c.env.Stderr, "Usage: consul kv <get KEY | put KEY VALUE | delete KEY>")
	return kit.Exit(1)
}
