package flower

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
)

// taker takes messages out of a mailbox.
type taker struct {
	got    []string
	cancel context.CancelFunc
}

func take(t *testing.T, b *mailbox, window int) *taker {
	ctx, cancel := context.WithCancel(t.Context())
	x := &taker{cancel: cancel}
	go func() {
		_ = b.serve(ctx, window, func(m *flowerpb.Message) error {
			x.got = append(x.got, m.MessageId)
			return nil
		})
	}()
	return x
}

func TestMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMailbox()
		for i := range 3 {
			b.put(&flowerpb.Message{MessageId: fmt.Sprint(i)})
		}
		first := take(t, b, 2)
		synctest.Wait()
		if diff := cmp.Diff([]string{"0", "1"}, first.got); diff != "" {
			t.Errorf("with a window of 2: %s", diff)
		}
		if !b.answered("0") || b.answered("0") {
			t.Error("a message is answered once")
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"0", "1", "2"}, first.got); diff != "" {
			t.Errorf("after an answer: %s", diff)
		}
		first.cancel() // What it has not answered is for somebody else, in the same order.
		synctest.Wait()
		second := take(t, b, 5)
		synctest.Wait()
		if diff := cmp.Diff([]string{"1", "2"}, second.got); diff != "" {
			t.Errorf("after the first has gone: %s", diff)
		}
		second.cancel()
		synctest.Wait()

		time.Sleep(messageLife + time.Second) // Nobody waits for what is as old as that.
		third := take(t, b, 5)
		synctest.Wait()
		if len(third.got) > 0 {
			t.Errorf("old messages were sent: %v", third.got)
		}
		third.cancel()
		synctest.Wait()
		room := 0
		for b.put(&flowerpb.Message{MessageId: fmt.Sprint("x", room)}) {
			room++
		}
		if room != maxWaiting {
			t.Errorf("there was room for %d, want %d", room, maxWaiting)
		}
	})
}

func TestMailboxSendFails(t *testing.T) {
	b := newMailbox()
	b.put(&flowerpb.Message{MessageId: "a"})
	broken := errors.New("broken")
	if err := b.serve(t.Context(), 1, func(*flowerpb.Message) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(b.waiting) != 1 || len(b.out) != 0 {
		t.Errorf("it does not wait for another: %v, %v", b.waiting, b.out)
	}
}
