package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// keeperIdle is for how long a keeper waits for who has started it. The next one who comes starts another.
const keeperIdle = 15 * time.Minute

// Keeper is the program of the pod through which records are gathered. It listens on the loopback of its pod: only who
// may forward ports of the pod gets there. It ends when nobody has asked it anything for a while.
func Keeper(ctx context.Context, env *kit.Env) error { return ended(env, keep(ctx, env)) }

func keep(ctx context.Context, env *kit.Env) error {
	var f podFlags
	s, store, err := f.open(env)
	if err != nil {
		return err
	}
	if err := claim(ctx, store, s.encoded); err != nil {
		return err
	}
	ln, err := env.Net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	k := &keeper{store: store, runs: len(s.Runs)}
	srv := &http.Server{Handler: k.handler(), ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	go k.watch(ctx, end)
	fmt.Fprintf(env.Stdout, "the records of %d runs are at %s\n", k.runs, f.store)
	return kit.IgnoreClosed(srv.Serve(ln))
}

// claim keeps the plan beside its records, and refuses a place where those of another plan are. It is also the proof
// that the place can be written to.
func claim(ctx context.Context, store Store, plan []byte) error {
	fresh, err := store.Put(ctx, planName, plan)
	if err != nil || fresh {
		return err
	}
	there, err := store.Get(ctx, planName)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, plan) {
		return badInput(errors.New("another campaign, of other runs, has its records there: choose another --name, " +
			"or remove them"))
	}
	return nil
}

type keeper struct {
	store Store
	runs  int
	asked atomic.Int64 // when it was last asked something, in Unix seconds
}

// watch ends the keeper when nobody needs it.
func (k *keeper) watch(ctx context.Context, end func()) {
	k.asked.Store(time.Now().Unix())
	for ctx.Err() == nil {
		left := time.Until(time.Unix(k.asked.Load(), 0).Add(keeperIdle))
		if left <= 0 {
			end()
			return
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
}

// The keeper's answers: the runs that are recorded, as text, a record, and the telemetry of a run, which is empty if it
// has kept none.
const (
	recordedPath  = "/recorded"
	recordPath    = "/records/"
	telemetryPath = "/telemetry/"
)

func (k *keeper) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+recordedPath, k.list)
	mux.HandleFunc("GET "+recordPath+"{index}", k.give(func(_ context.Context, _ int, record []byte) ([]byte, error) {
		return record, nil
	}))
	mux.HandleFunc("GET "+telemetryPath+"{index}", k.give(k.telemetry))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.asked.Store(time.Now().Unix())
		mux.ServeHTTP(w, r)
	})
}

func (k *keeper) list(w http.ResponseWriter, r *http.Request) {
	names, err := k.store.List(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	there := make([]bool, k.runs)
	for _, name := range names {
		if i, ok := recorded(name); ok && i < k.runs {
			there[i] = true
		}
	}
	var list indexes
	for i, yes := range there {
		if yes {
			list = append(list, i)
		}
	}
	fmt.Fprintln(w, list)
}

// give answers with what there is of a run that is recorded.
func (k *keeper) give(what func(ctx context.Context, index int, record []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.PathValue("index"))
		if err != nil || i < 0 || i >= k.runs {
			http.Error(w, "there is no such run", http.StatusNotFound)
			return
		}
		data, err := k.store.Get(r.Context(), RecordName(i))
		if err == nil {
			data, err = what(r.Context(), i, data)
		} else if errors.Is(err, fs.ErrNotExist) {
			http.Error(w, "it is not recorded", http.StatusNotFound)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data) // Who does not get all of it asks again.
	}
}

// telemetry is what belongs to a record; nothing if the run has kept none.
func (k *keeper) telemetry(ctx context.Context, index int, record []byte) ([]byte, error) {
	data, err := k.store.Get(ctx, telemetryName(index, record))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
