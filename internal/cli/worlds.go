package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
	"github.com/aiopslab/aiopslab/world/kept"
)

const (
	// worldsVariable names the directory in which worlds are kept, or says that none are.
	worldsVariable = "AIOPSLAB_WORLDS"
	noWorlds       = "off"
)

// worldsDir is the directory in which worlds are kept; empty if none are.
func worldsDir(s *State) string {
	switch dir := s.Env(worldsVariable); dir {
	case noWorlds:
		return ""
	case "":
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(cache, "aiopslab", "worlds")
	default:
		return dir
	}
}

// keepsWorlds reports whether a run may start from a kept world, and keep one. It may not where its agent has the
// user's rights, since such an agent could write one: with --unconfined, or on a system that confines no program.
func keepsWorlds(s *State, unconfined bool) bool {
	return worldsDir(s) != "" && !unconfined && cage.Possible()
}

// forgetWorlds removes what an agent that is not confined may have changed.
func forgetWorlds(s *State) {
	if dir := worldsDir(s); dir != "" {
		if store, err := kept.Open(dir); err == nil {
			store.Clear()
		}
	}
}

// startFor starts the cluster of an environment: from a kept world if there is one of the application, else bare, and
// then the world that is made of it is kept.
func startFor(ctx context.Context, s *State, o process.Opening, l *session.Local) (*embedded.Cloud, error) {
	if o.App == nil {
		return startBare(ctx, s, o)
	}
	store, key, err := worldOf(s, o.App)
	if err != nil {
		o.Log.Warn("worlds cannot be kept", "why", err)
		return startBare(ctx, s, o)
	}
	l.Made = func(_ *app.App, made session.Made) {
		if err := keepWorld(store, key, made); err != nil {
			o.Log.Warn("the world cannot be kept", "why", err)
		}
	}
	c, err := startKept(ctx, s, o, l, store, key)
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, startFailure(err)
	}
	store.Remove(key)
	if err := os.MkdirAll(o.Dir, 0o700); err != nil { // A cluster that does not start takes its directory with it.
		return nil, startFailure(err)
	}
	o.Log.Info("there is no world to start from", "app", o.App.Name, "why", err)
	return startBare(ctx, s, o)
}

// worldOf returns where the world of an application is kept, and under which key. It depends on everything that the
// world does: the program, with all its images and what telemetry it deploys, and the application.
func worldOf(s *State, a *app.App) (*kept.Store, string, error) {
	store, err := kept.Open(worldsDir(s))
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	program, err := kept.Program(self)
	if err != nil {
		return nil, "", err
	}
	parts := [][]byte{program, []byte(a.Name), []byte(a.Namespace), a.Archive}
	err = fs.WalkDir(a.Manifests, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(a.Manifests, name)
		parts = append(parts, []byte(name), b)
		return err
	})
	return store, kept.Key(parts...), err
}

// errNoWorld is that none was kept.
var errNoWorld = errors.New("none was kept yet")

// startKept starts a cluster from a kept world, with the past of the run that it is started for.
func startKept(ctx context.Context, s *State, o process.Opening, l *session.Local, store *kept.Store, key string,
) (*embedded.Cloud, error) {
	b, err := store.Get(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNoWorld
	} else if err != nil {
		return nil, err
	}
	began := time.Now()
	made, snapshot, err := readWorld(b)
	if err != nil {
		return nil, err
	}
	opts := workerOptions(s, o)
	r := &session.Revival{App: o.App, Made: made, Seed: o.Seed}
	if opts.Snapshot, err = snapshot.Rewrite(opts.Images, r.Past().Write); err != nil {
		return nil, fmt.Errorf("give the kept world a past: %w", err)
	}
	read := time.Now()
	c, err := embedded.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	o.Log.Debug("started from a kept world", "app", o.App.Name, "read", read.Sub(began), "took", time.Since(read))
	l.Revival = r
	return c, nil
}

// keepWorld keeps a world: how it looks when it is well, in a line, and its snapshot.
func keepWorld(store *kept.Store, key string, made session.Made) error {
	snap, ok := made.Snapshot.(*embedded.Snapshot)
	if !ok {
		return fmt.Errorf("a %T cannot be kept", made.Snapshot)
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(made.Healthy); err != nil {
		return err
	}
	if _, err := snap.WriteTo(&b); err != nil {
		return err
	}
	return store.Put(key, b.Bytes())
}

// readWorld reads what keepWorld has written.
func readWorld(b []byte) (made session.Made, s *embedded.Snapshot, err error) {
	looks, rest, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(looks, &made.Healthy); err != nil {
		return made, nil, fmt.Errorf("the kept world is damaged: %w", err)
	}
	if s, err = embedded.ReadSnapshot(bytes.NewReader(rest)); err != nil {
		return made, nil, err
	}
	made.Snapshot = s
	return made, s, nil
}
