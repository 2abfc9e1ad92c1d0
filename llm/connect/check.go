package connect

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/aiopslab/aiopslab/llm"
)

// checkTokens is how long the reply to a check may be. Providers refuse less.
const checkTokens = 16

// checkPatience asks a few times within seconds: a check is to be quick.
var checkPatience = llm.Patience{Attempts: 3, First: time.Second, Longest: 5 * time.Second}

// tooShort is what a model says that has thought until the limit.
var tooShort = regexp.MustCompile(`(?i)could not finish|output limit|max_(completion_|output_)?tokens`)

// Check asks a model for one word, so that a wrong key, name or address shows at once. A failure that will pass,
// such as a busy endpoint, is not an error.
func Check(ctx context.Context, c Config) error {
	patience := checkPatience
	patience.Timeout = c.Patience.Timeout
	c.Patience = patience
	m, err := Open(c)
	if err != nil {
		return err
	}
	_, err = m.Chat(ctx, llm.Request{
		Messages:  []llm.Message{{Role: llm.User, Text: "Reply with OK."}},
		MaxTokens: checkTokens,
	})
	f, ok := errors.AsType[*llm.Failure](err)
	switch {
	case !ok:
		return err
	case f.Status == http.StatusTooManyRequests && f.Temporary(), f.Status == http.StatusServiceUnavailable:
		return nil
	case f.Status == http.StatusBadRequest && tooShort.MatchString(f.Message):
		return nil
	}
	return err
}
