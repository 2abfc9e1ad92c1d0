package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/record"
)

// pager calls an agent that is on call. It says what a pager would, and no more.
type pager struct {
	tell Tell

	mu      sync.Mutex
	pages   []*call
	news    []string      // what the agent was not told yet
	changed chan struct{} // closed when there is something to tell
	over    bool
}

// call is a page, and how far it is.
type call struct {
	number         int
	sent           time.Time
	told, answered bool
}

var _ aci.Pager = (*pager)(nil)

func newPager(tell Tell) *pager { return &pager{tell: tell, changed: make(chan struct{})} }

// pageGap is how old a page is at most that more is added to: alerts of one cause come one after another.
const pageGap = time.Minute

// call calls. What comes soon after a page that is not answered is added to that.
func (p *pager) call(now time.Time, lines []string) {
	p.mu.Lock()
	n := len(p.pages)
	more := n > 0 && !p.pages[n-1].answered && now.Sub(p.pages[n-1].sent) < pageGap
	if !more {
		p.pages = append(p.pages, &call{number: n + 1, sent: now})
		n++
	}
	last := p.pages[n-1]
	page := record.Page{Number: last.number, Time: now, Lines: lines, More: more}
	p.news = append(p.news, pageText(page))
	p.signal()
	p.mu.Unlock()
	p.tell(record.PageEvent, page)
}

// pageText is a page as an agent reads it.
func pageText(p record.Page) string {
	head := fmt.Sprintf("Page %d", p.Number)
	if p.More {
		head += ", more"
	}
	return head + ":\n    " + strings.Join(p.Lines, "\n    ")
}

// signal wakes whoever waits. The lock is held.
func (p *pager) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// settled reports whether every page is answered, or the last one is so old that it will not be.
func (p *pager) settled(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pages {
		if !c.answered && now.Sub(c.sent) < pageGap {
			return false
		}
	}
	return true
}

// end says that the shift is over.
func (p *pager) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		p.signal()
	}
}

const (
	shiftOver = "The shift is over."
	noPage    = "There is no page yet. The shift goes on: submit again to wait for one."
)

// take is what the agent is to be told now, which it is then; "" if there is nothing.
func (p *pager) take() (text string, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pages {
		c.told = true
	}
	text = strings.Join(p.news, "\n")
	p.news = nil
	return text, p.over
}

// Answer implements [aci.Pager].
func (p *pager) Answer(ctx context.Context, services []string, wait time.Duration) (string, any, bool) {
	answer := record.PageAnswer{Pages: []int{}, Services: services, Time: time.Now()}
	p.mu.Lock()
	for _, c := range p.pages {
		if c.told && !c.answered {
			c.answered = true
			answer.Pages = append(answer.Pages, c.number)
		}
	}
	p.mu.Unlock()
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		p.mu.Lock()
		ready, changed := len(p.news) > 0 || p.over, p.changed
		p.mu.Unlock()
		if ready {
			text, over := p.take()
			if over {
				return shiftOver, answer, true
			}
			return text, answer, false
		}
		select {
		case <-changed:
		case <-limit.C:
			return noPage, answer, false
		case <-ctx.Done():
			return noPage, answer, false
		}
	}
}

// addTo adds what there is to tell to what came of an action, whatever that was. When the shift is over, so is the
// agent's turn.
func (p *pager) addTo(r *Reply) {
	if r.Submitted {
		return
	}
	text, over := p.take()
	switch {
	case over:
		r.Text = strings.TrimRight(r.Text, "\n") + "\n\n" + shiftOver
		r.Submitted, r.Question, r.Next, r.Answer = true, "", "", json.RawMessage("null")
	case text != "":
		r.Text = aci.AddPages(r.Text, text)
	}
}
