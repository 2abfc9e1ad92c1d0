package guard

import (
	"context"
	"net/http"
	"time"
)

// writeTimeout is how long a write may take. The API server itself gives up earlier.
const writeTimeout = 2 * time.Minute

// alone waits until nobody else writes by the agent's door, if this is a write there, until [exchange.release]. The
// request goes on then when its client leaves: so it is known what came of it. It reports false if it has answered.
func (x *exchange) alone(w http.ResponseWriter, r **http.Request) bool {
	if x.entry == nil || x.from.network || x.target.Verb == "connect" {
		return true
	}
	unlock, err := x.guard.lock((*r).Context())
	if err != nil {
		x.fail(w, err)
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel((*r).Context()), writeTimeout)
	stop := context.AfterFunc(x.guard.doorCtx, cancel)
	x.unlock = unlock
	x.end = func() {
		stop()
		cancel()
	}
	*r = (*r).WithContext(ctx)
	return true
}

// admit lets a request pass, unless a transaction is open and it cannot be taken back, or there is no room for it. End
// must be called when it is over.
func (x *exchange) admit(w http.ResponseWriter, r *http.Request) (end func(), ok bool) {
	end, h := func() {}, &x.guard.history
	e := x.entry
	if e == nil {
		return end, true
	}
	e.Irreversible = irreversible(e, x.before)
	if x.from.network {
		return end, true
	}
	allowed := x.guard.opts.Policy.InTransactions()
	if x.target.Verb == "connect" {
		if x.keeps() {
			if end, refused := x.keep(r, allowed); refused != nil {
				x.refuse(w, refused)
				return func() {}, false
			} else if end != nil {
				return end, true
			}
		}
		end, refused := h.stream(e, allowed)
		if refused != nil {
			x.refuse(w, refused)
		}
		return end, refused == nil
	}
	size := int64(len(x.before) + len(e.Request))
	if x.findChildren(r.Context()); len(x.children) > 0 {
		for _, c := range x.children {
			size += int64(len(c.Before))
		}
	}
	if refused := h.take(e, size, allowed); refused != nil {
		x.refuse(w, refused)
		return end, false
	}
	x.taken = e.Transaction > 0
	return end, true
}
