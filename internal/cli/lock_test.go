package cli

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// One has the lock at a time; who is told to stop does not wait for it.
func TestQueueUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queue")
	first, err := queueUp(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := queueUp(cancelled, file); !errors.Is(err, context.Canceled) {
		t.Errorf("while another has the lock: %v", err)
	}
	first()
	first()
	if none, err := queueUp(t.Context(), ""); err != nil {
		t.Error(err)
	} else {
		none()
	}
	other := filepath.Join(t.TempDir(), "queue")
	first, err = queueUp(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		giveBack, err := queueUp(context.Background(), other)
		if err == nil {
			giveBack()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("two have the lock: %v", err)
	default:
	}
	first()
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestEpitaph(t *testing.T) {
	status := errors.New("exit status 2")
	for stderr, want := range map[string]string{
		"":                             "exit status 2",
		"aiopslab: the disk is full\n": "aiopslab: the disk is full (exit status 2)",
		"panic: oh no\n\ngoroutine 1 [x]:\n\tf\n": "panic: oh no (exit status 2)",
		"fatal error: all goroutines\nmore\n":     "fatal error: all goroutines (exit status 2)",
	} {
		if got := epitaph(stderr, status); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}
