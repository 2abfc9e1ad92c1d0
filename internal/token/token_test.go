package token

import "testing"

func TestCount(t *testing.T) {
	// As tiktoken counts in cl100k_base; special tokens are text like any other.
	for text, want := range map[string]int{"": 0, "hello world": 2, "kubectl get pods -n test-hotel-reservation": 10} {
		if got := Count(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	if Count("<|endoftext|>") == 0 {
		t.Error("a special token in a text is not counted")
	}
}
