package guard

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TransactionPath is where the agent's clients find the actions of transactions: begin, commit, abort and undo are
// POSTed, history is read. The plugin `kubectl lab` does that.
const TransactionPath = "/lab/"

// serveTransaction does an action of transactions and answers with plain text, or with an error of the API's form.
func (g *Guard) serveTransaction(w http.ResponseWriter, r *http.Request) {
	action := strings.TrimPrefix(r.URL.Path, TransactionPath)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	var t *Transaction
	var err error
	switch query, ctx := r.URL.Query(), r.Context(); {
	case action == "history" && reads:
		answerText(w, g.History())
		return
	case r.Method != http.MethodPost && action == "history", r.Method != http.MethodPost && !known[action]:
		writeNoPage(w)
		return
	case r.Method != http.MethodPost:
		err = refuse("%s is a POST, not a %s", action, r.Method)
	case action == "begin":
		t, err = g.Begin(ctx)
	case action == "commit":
		var seconds int
		if seconds, err = number(query.Get("wait"), int(DefaultWait.Seconds())); err == nil {
			t, err = g.Commit(ctx, time.Duration(seconds)*time.Second)
		}
	case action == "abort":
		t, err = g.Abort(ctx)
	case action == "undo":
		var n int
		if n, err = number(query.Get("n"), 1); err == nil {
			t, err = g.Undo(ctx, n)
		}
	default:
		writeNoPage(w)
		return
	}
	if err != nil {
		code, reason := http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		if _, ok := errors.AsType[*refusedError](err); ok {
			code, reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
		}
		writeStatus(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: err.Error(),
		}})
		return
	}
	answerText(w, t.String())
}

// known are the actions that are POSTed.
var known = map[string]bool{"begin": true, "commit": true, "abort": true, "undo": true}

// maxNumber is more than any number of writes or seconds has to be.
const maxNumber = 1_000_000

// number reads a number of a query.
func number(s string, missing int) (int, error) {
	if s == "" {
		return missing, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, refuse("%q is not a number of 0 or more", s)
	}
	return int(min(n, maxNumber)), nil
}

func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // There is nobody to tell.
}
