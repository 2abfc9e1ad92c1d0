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
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/app"
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
func startFor(ctx context.Context, s *State, o process.Opening, l *session.Local) (newCluster, error) {
	if o.App == nil {
		return startBare(ctx, s, o)
	}
	shelf, err := shelfOf(s, o)
	if err != nil {
		o.Log.Warn("worlds cannot be kept", "why", err)
		return startBare(ctx, s, o)
	}
	l.Made = func(_ *app.App, made session.Made) {
		if err := keepWorld(shelf, made); err != nil {
			o.Log.Warn("the world cannot be kept", "why", err)
		}
	}
	c, err := startKept(ctx, s, o, l, shelf)
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, startFailure(err)
	}
	shelf.clear()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil { // A cluster that does not start takes its directory with it.
		return nil, startFailure(err)
	}
	o.Log.Info("there is no world to start from", "app", o.App.Name, "why", err)
	return startBare(ctx, s, o)
}

// shelf is where the world of one application is kept.
type shelf interface {
	// take returns it. The error is [os.ErrNotExist] if there is none.
	take() ([]byte, error)
	put(world []byte) error
	// clear removes one that is of no use.
	clear()
}

// shelfOf returns where the world is kept that a cluster is started from.
func shelfOf(s *State, o process.Opening) (shelf, error) {
	key, err := worldKey(o.App)
	if err != nil {
		return nil, err
	}
	if o.Hand != nil {
		return handed{o, key}, nil
	}
	store, err := kept.Open(worldsDir(s))
	if err != nil {
		return nil, err
	}
	return stored{store, key}, nil
}

// stored is a shelf on the disk.
type stored struct {
	store *kept.Store
	key   string
}

func (k stored) take() ([]byte, error)  { return k.store.Get(k.key) }
func (k stored) put(world []byte) error { return k.store.Put(k.key, world) }
func (k stored) clear()                 { k.store.Remove(k.key) }

// handed is a shelf of the supervisor, to whom the key means nothing. It may be of another program: it comes first in
// what is kept.
type handed struct {
	process.Opening
	key string
}

func (h handed) take() ([]byte, error) {
	if h.World == nil {
		return nil, os.ErrNotExist
	}
	world, ok := bytes.CutPrefix(h.World, []byte(h.key))
	if !ok {
		return nil, errors.New("it was kept by another program")
	}
	return world, nil
}

func (h handed) put(world []byte) error {
	if len(h.key)+len(world) > process.MaxWorld {
		return fmt.Errorf("a world of %d MB is too big to be kept", len(world)>>20)
	}
	h.Hand(slices.Concat([]byte(h.key), world))
	return nil
}

func (handed) clear() {} // The next one that is made takes its place.

// heldWorlds are the worlds of a server: in its memory, which those who are served cannot write to. Files would be
// theirs as well if they are programs of the same user.
type heldWorlds struct{ memory kept.Memory }

var _ process.Worlds = (*heldWorlds)(nil)

func (w *heldWorlds) Get(a *app.App) []byte        { return w.memory.Get(appKey(a)) }
func (w *heldWorlds) Put(a *app.App, world []byte) { w.memory.Put(appKey(a), world) }

// appKey tells applications apart: by the names of those that are built in, and by the archives of others.
func appKey(a *app.App) string { return kept.Key([]byte(a.Name), a.Archive) }

// worldKey is the key of an application's world. It depends on everything that the world does: the program, with all
// its images and what telemetry it deploys, and the application.
func worldKey(a *app.App) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := kept.Program(self)
	if err != nil {
		return "", err
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
	return kept.Key(parts...), err
}

// errNoWorld is that none was kept.
var errNoWorld = errors.New("none was kept yet")

// startKept starts a cluster from a kept world, with the past of the run that it is started for.
func startKept(ctx context.Context, s *State, o process.Opening, l *session.Local, k shelf) (newCluster, error) {
	b, err := k.take()
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
	w := workerWish(o)
	r := &session.Revival{App: o.App, Made: made, Seed: o.Seed}
	if w.from, err = snapshot.rewritten(s, r.Past().Write); err != nil {
		return nil, fmt.Errorf("give the kept world a past: %w", err)
	}
	read := time.Now()
	c, err := startNew(ctx, s, w)
	if err != nil {
		return nil, err
	}
	o.Log.Debug("started from a kept world", "app", o.App.Name, "read", read.Sub(began), "took", time.Since(read))
	l.Revival = r
	return c, nil
}

// keepWorld keeps a world: how it looks when it is well, in a line, and its snapshot.
func keepWorld(k shelf, made session.Made) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(made.Healthy); err != nil {
		return err
	}
	if _, err := made.Snapshot.WriteTo(&b); err != nil {
		return err
	}
	return k.put(b.Bytes())
}

// readWorld reads what keepWorld has written.
func readWorld(b []byte) (made session.Made, s *savedCluster, err error) {
	looks, rest, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(looks, &made.Healthy); err != nil {
		return made, nil, fmt.Errorf("the kept world is damaged: %w", err)
	}
	if s, err = readSaved(bytes.NewReader(rest)); err != nil {
		return made, nil, err
	}
	made.Snapshot = s.snapshot()
	return made, s, nil
}
