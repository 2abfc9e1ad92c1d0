package redis

import (
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// TestValkey runs the image as manifests do: it says what it is, and takes clients of Redis.
func TestValkey(t *testing.T) {
	m := kittest.New(t).Machine("redis", "10.244.0.2")
	image := Valkey(nil)
	m.Install(image)
	env := m.Env("docker-entrypoint.sh", "valkey-server")
	env.Dir = "/data"
	r := m.Run(image.Programs["/usr/local/bin/docker-entrypoint.sh"], env)
	r.Await("Ready to accept connections")
	if log := r.Stdout.String(); !strings.Contains(log, "Valkey version=9.0.1") || strings.Contains(log, "Redis") {
		t.Errorf("%s", log)
	}
	c := connect(t, m)
	if err := c.HSet(t.Context(), "user", "cart", "1").Err(); err != nil {
		t.Error(err)
	}
	info := c.Info(t.Context(), "server").Val()
	for _, want := range []string{"redis_version:7.2.4\r\n", "server_name:valkey\r\n", "valkey_version:9.0.1\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"valkey-cli --version", "valkey-cli 9.0.1\n"},
		{"valkey-cli hget user cart", "1\n"},
		{"redis-cli hget user cart", "1\n"},
		{"valkey-cli --help", "valkey-cli 9.0.1\n\nUsage: valkey-cli [OPTIONS]"},
		{"valkey-server --version", "Valkey server v=9.0.1 "},
		{"valkey-server --help", "./valkey-server (run"},
		{"valkey-cli -p 1 ping", "Could not connect to Valkey at 127.0.0.1:1: Connection refused"},
	} {
		args := strings.Fields(tt.args)
		e, out := m.Env(args...), &kittest.Buffer{}
		e.Stdout, e.Stderr = out, out
		kit.Run(t.Context(), image.Programs["/usr/local/bin/"+args[0]], e)
		if !strings.HasPrefix(out.String(), tt.want) && !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %s", tt.args, out)
		}
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 || !strings.Contains(r.Stdout.String(), "Valkey is now ready to exit") {
		t.Errorf("exit %d", code)
	}
	registry := kit.NewRegistry(image)
	for _, tag := range []string{"9.0.1-alpine3.23", "9.0.1", "9.0", "9", "8.1-alpine", "latest"} {
		if _, _, err := registry.Resolve("valkey/valkey:" + tag); err != nil {
			t.Error(err)
		}
	}
}
