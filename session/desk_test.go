package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aiopslab/aiopslab/guard"
)

func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk()
		answers := make(chan guard.Answer, 1)
		lay := func(ctx context.Context, n int) {
			d.Lay(ctx, Approval{Number: n}, func(a guard.Answer) error {
				answers <- a
				return nil
			})
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { lay(t.Context(), 2) })
		wg.Go(func() { lay(t.Context(), 1) })
		synctest.Wait()
		if q := d.Questions(); len(q) != 2 || q[0].Number != 1 || q[1].Number != 2 {
			t.Errorf("%+v", q)
		}

		// Of many answers at once one counts.
		var taken, refused int
		results := make(chan error, 5)
		for range cap(results) {
			wg.Go(func() { results <- d.Answer(t.Context(), 1, guard.Answer{Approved: true}) })
		}
		for range cap(results) {
			if err := <-results; err == nil {
				taken++
			} else if errors.Is(err, ErrNoQuestion) {
				refused++
			}
		}
		if got := <-answers; !got.Approved || taken != 1 || refused != cap(results)-1 {
			t.Errorf("%+v, %d answers were taken and %d refused", got, taken, refused)
		}

		// The run is over.
		d.end()
		synctest.Wait()
		if q := d.Questions(); len(q) != 0 {
			t.Errorf("%+v", q)
		}
		if err := d.Answer(t.Context(), 2, guard.Answer{}); !errors.Is(err, ErrNoQuestion) {
			t.Error(err)
		}
		lay(t.Context(), 3) // It does not wait.
	})
}

// What is refused altogether is refused at once, and so is what is asked afterwards. An answer that came before counts.
func TestDeskRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk()
		got := make(chan guard.Answer, 1)
		hand := func(a guard.Answer) error {
			got <- a
			return nil
		}
		go d.Lay(t.Context(), Approval{Number: 1}, hand)
		synctest.Wait()
		d.Refuse("it is late")
		d.Refuse("it is later")
		if a := <-got; a != (guard.Answer{Why: "it is late"}) {
			t.Errorf("%+v", a)
		}
		synctest.Wait()
		if q := d.Questions(); len(q) != 0 {
			t.Errorf("%+v", q)
		}
		if err := d.Answer(t.Context(), 1, guard.Answer{Approved: true}); !errors.Is(err, ErrNoQuestion) {
			t.Error(err)
		}
		d.Lay(t.Context(), Approval{Number: 2}, hand)
		if a := <-got; a != (guard.Answer{Why: "it is late"}) {
			t.Errorf("%+v", a)
		}
	})
	for range 100 { // Who comes first is up to chance, and each is told what became of it.
		d := NewDesk()
		got := make(chan guard.Answer, 1)
		_, changed := d.Watch()
		var wg sync.WaitGroup
		wg.Go(func() {
			d.Lay(t.Context(), Approval{Number: 1}, func(a guard.Answer) error {
				got <- a
				return nil
			})
		})
		<-changed
		wg.Go(func() { d.Refuse("it is late") })
		err := d.Answer(t.Context(), 1, guard.Answer{Approved: true})
		wg.Wait()
		if a := <-got; a.Approved != (err == nil) || err != nil && !errors.Is(err, ErrNoQuestion) {
			t.Fatalf("%+v, and who answers is told %v", a, err)
		}
	}
}

// Who watches is told of each question that comes, has its answer, or has nobody who waits any more.
func TestDeskWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk()
		ctx, cancel := context.WithCancel(t.Context())
		lay := func(n int) { d.Lay(ctx, Approval{Number: n}, func(guard.Answer) error { return nil }) }
		_, changed := d.Watch()
		for _, step := range []struct {
			name string
			do   func()
			want int
		}{
			{"one is asked", func() { go lay(1) }, 1},
			{"another is asked", func() { go lay(2) }, 2},
			{"one is answered", func() { _ = d.Answer(ctx, 1, guard.Answer{}) }, 1},
			{"who asked has left", cancel, 0},
		} {
			step.do()
			synctest.Wait()
			select {
			case <-changed:
			default:
				t.Errorf("%s, and nobody is told", step.name)
			}
			var list []Approval
			if list, changed = d.Watch(); len(list) != step.want {
				t.Errorf("%s: %+v", step.name, list)
			}
		}
		_ = d.Answer(t.Context(), 7, guard.Answer{})
		select {
		case <-changed:
			t.Error("an answer to nothing is told of")
		default:
		}
	})
}

// TestManyQuestions: an agent cannot bury who is asked in questions.
func TestManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a approvals
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan Approval, 10*maxQuestions)
		answers := make(chan guard.Answer, 10*maxQuestions)
		for range 10 * maxQuestions {
			go func() {
				answers <- a.ask(ctx, guard.Question{}, grip{}.Hold, func(_ string, data any) { told <- data.(Approval) })
			}()
		}
		synctest.Wait()
		if len(told) != maxQuestions || len(answers) != 9*maxQuestions {
			t.Errorf("%d were asked, and %d refused", len(told), len(answers))
		}
		if got := <-answers; got.Approved || got.Why == "" {
			t.Errorf("%+v", got)
		}
		cancel()
		synctest.Wait()
	})
}
