package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// asLabapp makes the test binary labapp.
const asLabapp = "TEST_AS_LABAPP"

func TestMain(m *testing.M) {
	if os.Getenv(asLabapp) != "" {
		main()
	}
	os.Exit(m.Run())
}

// labapp is the command in a process of its own, in a directory of its own.
func labapp(t *testing.T, args ...string) (*exec.Cmd, *kittest.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &kittest.Buffer{}
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), out, out
	cmd.Env = append(os.Environ(), asLabapp+"=1", "OTEL_EXPORTER_PROMETHEUS_PORT=0")
	return cmd, out
}

func TestUnknownService(t *testing.T) {
	cmd, out := labapp(t, "nosuch")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(out.String(), `there are: accounting, ad, app, astronomy-shop/frontend, astronomy-shop/recommendation, bank,`) {
		t.Errorf("%v: %s", err, out)
	}
}

// bound is the host's network with one listener made beforehand.
type bound struct {
	kit.Network
	ln net.Listener
}

func (b bound) Listen(string, string) (net.Listener, error) { return b.ln, nil }

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// TestService runs a service as an ordinary process, with a database and a registry, over the host's
// files and network.
func TestService(t *testing.T) {
	db := listen(t)
	env := kit.HostEnv()
	env.Args = []string{"mongod", "--dbpath", t.TempDir()}
	env.Stdout, env.Stderr, env.Net = &kittest.Buffer{}, &kittest.Buffer{}, bound{env.Net, db}
	env.OnNotify(func() <-chan syscall.Signal { return nil })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- kit.Run(ctx, mongo.Mongod, env) }()
	defer func() {
		stop()
		<-ended
	}()

	requests := make(chan string, 16)
	registry := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.URL.Path
	}))
	defer registry.Close()

	free := listen(t) // Its port is, once it is closed.
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	config, err := json.Marshal(map[string]string{
		"UserPort": port, "UserMongoAddress": db.Addr().String(), "consulAddress": registry.Listener.Addr().String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := labapp(t, "user")
	if err := os.WriteFile(filepath.Join(cmd.Dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer cmd.Process.Kill()

	await := func(want string) {
		t.Helper()
		select {
		case got := <-requests:
			if !strings.HasPrefix(got, want) {
				t.Errorf("the registry was asked to %s, not to %s", got, want)
			}
		case err := <-done:
			t.Fatalf("it ended: %v\n%s", err, out)
		case <-time.After(time.Minute):
			t.Fatalf("the registry was not asked to %s\n%s", want, out)
		}
	}
	await("PUT /v1/agent/service/register")
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for password, want := range map[string]bool{strings.Repeat("7", 10): true, "wrong": false} {
		r, err := hotelpb.NewUserClient(conn).CheckUser(t.Context(), &hotelpb.CheckUserRequest{Username: "Cornell_7", Password: password}, grpc.WaitForReady(true))
		if err != nil || r.Correct != want {
			t.Errorf("password %s: %v, %v\n%s", password, r, err, out)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await("PUT /v1/agent/service/deregister/srv-user-")
	if err := <-done; err != nil && cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("told to stop: %v\n%s", err, out)
	}
	if want := fmt.Sprintf("Starting server on port %s...", port); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}
