package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// The control socket of an environment takes orders from other commands of the same user.

// serveControl serves it until the process ends.
func serveControl(c newCluster, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	m := http.NewServeMux()
	m.HandleFunc("POST /snapshot", order(func(ctx context.Context, file string) error {
		return saveSnapshot(ctx, c, file)
	}))
	m.HandleFunc("POST /reset", order(func(ctx context.Context, file string) error {
		snap, err := readSnapshot(file)
		if err != nil {
			return err
		}
		return c.Reset(ctx, snap.snapshot())
	}))
	go func() { _ = http.Serve(l, m) }()
	return nil
}

func order(f func(ctx context.Context, file string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Half an order is worse than one that nobody waits for any more.
		if err := f(context.WithoutCancel(r.Context()), r.FormValue("file")); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(err.Error())
		}
	}
}

// sendOrder gives an order to the running environment.
func sendOrder(ctx context.Context, s *State, what, file string) error {
	e, err := theEnvironment(s)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", e.Control)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://environment/"+what, nil)
	if err != nil {
		return err
	}
	q := req.URL.Query()
	q.Set("file", file)
	req.URL.RawQuery = q.Encode()
	res, err := client.Do(req)
	if err != nil {
		return fail(ExitEnvironment, fmt.Errorf("ask the environment: %w", err), "")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var msg string
		if err := json.NewDecoder(res.Body).Decode(&msg); err != nil {
			msg = res.Status
		}
		return errors.New(msg)
	}
	return nil
}

// saveSnapshot writes a snapshot so that the file is either whole or not there.
func saveSnapshot(ctx context.Context, c newCluster, file string) error {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("take a snapshot: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".snapshot-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, reason(err))
	}
	defer os.Remove(f.Name())
	_, err = snap.WriteTo(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, reason(err))
	}
	return nil
}

// reason strips an error of the names of temporary files.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

func readSnapshot(file string) (*savedCluster, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := readSaved(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func newSnapshot(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Save the running environment to a file",
		Long: `Save the running environment, API objects, containers and volumes, to a file.

Start another one from it with 'aiopslab up --from FILE', or bring this one back
to it with 'aiopslab reset FILE'. The file holds the cluster's keys.`,
		Args: oneArg("the file to write"),
		RunE: func(c *cobra.Command, args []string) error { return orderFile(c.Context(), s, "snapshot", args[0]) },
	}
}

func newReset(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "reset FILE",
		Short: "Bring the running environment back to a snapshot",
		Long: `Bring the running environment back to a snapshot that it saved, or was started
from: objects, containers and volumes. Whatever happened since is undone.`,
		Args: oneArg("the snapshot's file"),
		RunE: func(c *cobra.Command, args []string) error { return orderFile(c.Context(), s, "reset", args[0]) },
	}
}

func orderFile(ctx context.Context, s *State, what, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := sendOrder(ctx, s, what, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "%s done in %.2f s\n", what, time.Since(start).Seconds())
	return err
}
