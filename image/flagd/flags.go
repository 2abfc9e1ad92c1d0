package flagd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/open-feature/flagd/core/pkg/evaluator"
	"github.com/open-feature/flagd/core/pkg/logger"
	"github.com/open-feature/flagd/core/pkg/model"
	"github.com/open-feature/flagd/core/pkg/notifications"
	"github.com/open-feature/flagd/core/pkg/store"
	coresync "github.com/open-feature/flagd/core/pkg/sync"

	"github.com/aiopslab/aiopslab/internal/nesting"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// pollEvery is how often the files are looked at: those of a container tell nobody that they change.
	pollEvery = time.Second
	maxFile   = 1 << 20
	maxRule   = 16 << 10
	maxDepth  = 64
	// flagBytes is what a byte of a file takes once it is read, about.
	flagBytes = 8
)

// flags are what the files say, as of their last good version.
type flags struct {
	env    *kit.Env
	log    *journal
	eval   *evaluator.JSON
	store  *store.Store
	holder *kit.Holder
	files  []string
	seen   map[string][]byte // what was read last; nil is a file that is not there
	held   int

	mu   sync.Mutex
	subs map[chan event]struct{}
}

// event is what those who listen are told.
type event struct {
	kind string
	data map[string]any
}

func newFlags(env *kit.Env, log *journal, holder *kit.Holder, files []string) (*flags, error) {
	quiet := logger.NewLogger(nil, false) // The core shares its logger between all evaluators of the process.
	s, err := store.NewStore(quiet, files)
	if err != nil {
		return nil, err
	}
	return &flags{
		env: env, log: log, store: s, eval: evaluator.NewJSON(quiet, s), holder: holder, files: files,
		seen: map[string][]byte{}, subs: map[chan event]struct{}{},
	}, nil
}

// load reads all files for the first time. One that is not there is an error.
func (f *flags) load() error {
	for _, name := range f.files {
		if _, err := f.env.FS.Stat(f.env.Path(name)); err != nil {
			return fmt.Errorf("cannot watch the source %s: %w", name, err)
		}
	}
	f.refresh()
	return nil
}

// watch has the flags follow their files until ctx ends.
func (f *flags) watch(ctx context.Context) {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f.refresh()
		}
	}
}

// refresh reads the files that have changed, and tells what that has changed.
func (f *flags) refresh() {
	before := f.all()
	changed := false
	for _, name := range f.files {
		data, err := f.env.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			data, err = nil, nil
		}
		old, known := f.seen[name]
		if err != nil || known && bytes.Equal(old, data) && (old == nil) == (data == nil) {
			continue
		}
		f.seen[name] = data
		if err := f.set(name, data); err != nil {
			f.log.error("the flags of %s are not taken, those that were there before stay: %v", name, err)
			continue
		}
		changed = true
		f.log.info("configuration of flags updated from %s", name)
	}
	if !changed {
		return
	}
	size := 0
	for _, data := range f.seen {
		size += flagBytes * len(data)
	}
	_ = f.holder.Add(size - f.held) // If it fails, the container ends.
	f.held = size
	if diff := notifications.NewFromFlags(before, f.all()); len(diff) > 0 {
		f.tell(event{"configuration_change", map[string]any{"flags": map[string]any(diff)}})
	}
}

// set has the flags be what a file says; nil is one that is gone.
func (f *flags) set(name string, data []byte) error {
	if data == nil {
		f.log.warn("the source %s is gone, and its flags with it", name)
		data = []byte(`{"flags":{}}`)
	}
	if err := check(data); err != nil {
		return err
	}
	return f.eval.SetState(coresync.DataSync{FlagData: string(data), Source: name})
}

// loops are the operators of a rule whose cost is not bounded by its length.
var loops = []string{"map", "filter", "reduce", "all", "some", "none", "merge"}

// check refuses a file that would cost too much.
func check(data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("it has %d bytes, at most %d are read", len(data), maxFile)
	}
	if nesting.Depth(string(data)) > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	var file struct {
		Evaluators json.RawMessage `json:"$evaluators"`
		Flags      json.RawMessage `json:"flags"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if len(file.Flags) == 0 || string(file.Flags) == "null" {
		return errors.New("it has no flags")
	}
	if len(file.Evaluators) > 0 {
		return errors.New("it has $evaluators, which are not read here; write the rules out")
	}
	var rules []json.RawMessage
	var byKey map[string]model.Flag
	var list []model.Flag
	switch {
	case json.Unmarshal(file.Flags, &byKey) == nil:
		list = slices.Collect(maps.Values(byKey))
	case json.Unmarshal(file.Flags, &list) != nil:
		return errors.New("its flags are no flags")
	}
	for _, flag := range list {
		rules = append(rules, flag.Targeting)
	}
	for _, r := range rules {
		if len(r) > maxRule {
			return fmt.Errorf("a targeting rule has %d bytes, at most %d are taken", len(r), maxRule)
		}
		var rule any
		if len(r) > 0 && json.Unmarshal(r, &rule) != nil {
			return errors.New("a targeting rule is not JSON")
		}
		if op := looping(rule); op != "" {
			return fmt.Errorf("a targeting rule has the operator %q, which is not evaluated here", op)
		}
	}
	return nil
}

// looping is an operator of a rule that loops, or nothing.
func looping(rule any) string {
	switch v := rule.(type) {
	case map[string]any:
		for key, inner := range v {
			if slices.Contains(loops, key) {
				return key
			}
			if op := looping(inner); op != "" {
				return op
			}
		}
	case []any:
		for _, inner := range v {
			if op := looping(inner); op != "" {
				return op
			}
		}
	}
	return ""
}

// all are the flags by key.
func (f *flags) all() map[string]model.Flag {
	list, _, err := f.store.GetAll(context.Background(), &store.Selector{})
	if err != nil {
		return nil
	}
	m := map[string]model.Flag{}
	for _, one := range list {
		m[one.Key] = one
	}
	return m
}

const (
	maxListeners = 300
	// eventRoom is how many events wait for one who listens. Whoever is slower loses the oldest, and asks again anyway.
	eventRoom = 16
	// listenerBytes is what a stream takes.
	listenerBytes = 32 << 10
)

var errManyListeners = errors.New("too many listen already")

// listen subscribes to events.
func (f *flags) listen() (events <-chan event, stop func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) >= maxListeners {
		return nil, nil, errManyListeners
	}
	if err := f.holder.Add(listenerBytes); err != nil {
		return nil, nil, err
	}
	ch := make(chan event, eventRoom)
	ch <- event{kind: "provider_ready"}
	f.subs[ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, ch)
		_ = f.holder.Add(-listenerBytes)
	}, nil
}

func (f *flags) tell(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.subs {
		for sent := false; !sent; {
			select {
			case ch <- e:
				sent = true
			default:
				select {
				case <-ch:
				default:
				}
			}
		}
	}
}
