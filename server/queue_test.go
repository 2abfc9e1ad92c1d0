package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// at waits until a session is in a state, at a place in the line.
func (l *lab) at(path string, state State, place int) {
	l.t.Helper()
	var s Session
	for range 5000 {
		if s = get[Session](l, "GET", path, ""); s.State == state && s.Place == place {
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.t.Errorf("%s is %s at place %d, not %s at %d", path, s.State, s.Place, state, place)
}

// Sessions for which there is no place wait in line, are told where, and begin in their order. Who waits can leave, and
// when the line is full nobody else is let in.
func TestQueue(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 1, MaxQueued: 3}, &fakeBackend{})
	var paths []string
	for range 4 {
		paths = append(paths, l.open(detection(faulty)))
	}
	for i, path := range paths[1:] {
		l.at(path, Queued, i+1)
	}
	if n := len(l.workers.list()); n != 1 {
		t.Errorf("%d workers were started", n)
	}
	l.refused("POST", "/sessions", detection(faulty), 503, "and 3 wait in line")
	l.refused("POST", "/simulate", `{"problem_id": "`+faulty+`"}`, 503, "and 3 wait in line")
	l.refused("POST", "/envs", detection(faulty), 503, "as many as there may be")
	if s := get[Session](l, "DELETE", paths[1], ""); s.State != Failed || s.Place != 0 || !strings.Contains(s.Error, "in line") {
		t.Errorf("%+v", s)
	}
	l.at(paths[2], Queued, 1)
	l.at(paths[3], Queued, 2)
	var wg sync.WaitGroup
	for _, path := range paths[2:] { // Who asks for it waits for it.
		wg.Go(func() {
			if p := get[Problem](l, "GET", path+"/problem", ""); p.Task != "detection" {
				t.Errorf("%+v", p)
			}
			if o := get[Outcome](l, "POST", path+"/submit", `{"answer": "Yes"}`); !o.Solved {
				t.Errorf("%+v", o)
			}
		})
	}
	if o := get[Outcome](l, "POST", paths[0]+"/submit", `{"answer": "Yes"}`); !o.Solved {
		t.Errorf("%+v", o)
	}
	wg.Wait()
	for _, path := range []string{paths[0], paths[2], paths[3]} {
		l.at(path, Done, 0)
	}
	if n := len(l.workers.list()); n != 3 {
		t.Errorf("%d workers were started", n)
	}
}

// However many come, each is judged by its own answer, and no more go on than may.
func TestQueueOfMany(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	b := &fakeBackend{during: func(context.Context) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
	}}
	l := newLab(t, Options{MaxSessions: 3, MaxQueued: 64}, b)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			answer := "Yes"
			if i%2 == 0 {
				answer = "No"
			}
			path := l.open(detection(faulty))
			o := get[Outcome](l, "POST", path+"/submit", fmt.Sprintf(`{"answer": %q}`, answer))
			if o.Solved != (answer == "Yes") {
				t.Errorf("%s is %+v", answer, o)
			}
		})
	}
	wg.Wait()
	if most > 3 {
		t.Errorf("%d went on at a time", most)
	}
}

// Who waits when the server ends is told so, and a session that cannot begin when it is its turn says why.
func TestQueueEnds(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 1, MaxQueued: 2}, &fakeBackend{})
	l.open(detection(faulty))
	path := l.open(detection(faulty))
	l.front.Close(context.Background())
	if s := get[Session](l, "GET", path, ""); s.State != Failed || !strings.Contains(s.Error, "ending") {
		t.Errorf("%+v", s)
	}
}
