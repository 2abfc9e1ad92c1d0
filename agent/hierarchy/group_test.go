package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// mindFunc is a mind that is a function.
type mindFunc func(ctx context.Context, m Message, before []string, d *desk) (answer, error)

func (f mindFunc) Work(ctx context.Context, m Message, before []string, d *desk) (answer, error) {
	return f(ctx, m, before, d)
}

func say(text string) answer {
	var a answer
	a.Text = text
	return a
}

// topology is that of a small application.
const topology = `SERVICE  KIND     READY PODS  PORTS  DEPENDS ON
front    service  1/1         80     cart, pay
cart     service  1/1         80     db
pay      service  1/1         80     -
db       mongodb  1/1         27017  -
other    -        1/1         1      -
`

// gathered is a group with these minds, whose chief does nothing by itself. Clock, if not nil, is its time.
func gathered(t *testing.T, minds map[string]mindFunc, clock func(time.Duration) <-chan time.Time) (*group, *run) {
	t.Helper()
	r := &run{}
	var mu sync.Mutex
	if clock == nil {
		clock = time.After
	}
	o := options{
		mode: manager, heartbeat: time.Hour, patience: time.Minute,
		mind: func(g *group, service string) (Mind, error) {
			if m := minds[service]; m != nil {
				return m, nil
			}
			return mindFunc(func(context.Context, Message, []string, *desk) (answer, error) { return say("well"), nil }), nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	g := &group{
		Briefing: agent.Briefing{Namespace: "n", Scratch: t.TempDir(), Note: func(_ string, data any) {
			mu.Lock()
			defer mu.Unlock()
			if m, ok := data.(record.Message); ok {
				r.messages = append(r.messages, m)
			}
		}},
		options: o, after: clock, floor: newFloor(0, managerName), cancel: cancel, ended: make(chan struct{}), head: managerName,
		dead: map[string]string{}, shift: make(chan struct{}), prompts: map[string]bool{},
	}
	g.site, g.unready = readSite(topology)
	if err := g.gather(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, r
}

func texts(list []Message) (all []string) {
	for _, m := range list {
		all = append(all, fmt.Sprintf("%s: %s", m.From, m.Text))
	}
	slices.Sort(all)
	return all
}

func TestSite(t *testing.T) {
	s, unready := readSite(strings.ReplaceAll(topology, "db       mongodb  1/1", "db       mongodb  0/1") +
		"\nCalls in the traces of the last 10 minutes:\n  front -> pay: 3\n  pay -> db: 1\n  pay -> elsewhere: 1\n")
	if diff := cmp.Diff([]string{"front", "cart", "pay", "db"}, s.Services); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"front": {"cart", "pay"}, "cart": {"db"}, "pay": {"db"}}, s.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"db"}, unready); diff != "" {
		t.Error(diff)
	}
}

// A round brings the answers of all who have a task, whatever they answer in.
func TestRound(t *testing.T) {
	g, r := gathered(t, map[string]mindFunc{
		"db": func(context.Context, Message, []string, *desk) (answer, error) { return say("full"), nil },
	}, nil)
	list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "how are you?"}, {To: "pay", Text: "and you?"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"db: full", "pay: well"}, texts(list)); diff != "" {
		t.Error(diff)
	}
	for _, m := range r.messages {
		if m.Round != 1 || m.From != managerName && m.Re == 0 {
			t.Errorf("recorded %+v", m)
		}
	}
	if len(r.messages) != 4 {
		t.Errorf("recorded %+v", r.messages)
	}
}

// A maintainer that is ended in the middle of a task is made anew, gets the task again with what it had done, and
// its one answer arrives.
func TestKilled(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(g *group)
	}{
		{"ended", func(g *group) {
			for _, m := range g.members {
				if m.name == "db" {
					m.kill(errKilled)
				}
			}
		}},
		{"panic", func(*group) { panic("lost its mind") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lives := 0
			var g *group
			g, r := gathered(t, map[string]mindFunc{
				"db": func(ctx context.Context, _ Message, before []string, d *desk) (answer, error) {
					if lives++; lives == 1 {
						d.log("looked at the disk")
						tt.end(g)
						<-ctx.Done()
						return answer{}, ctx.Err()
					}
					return say("life 2, before: " + strings.Join(before, ", ")), nil
				},
			}, nil)
			list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "mend"}, {To: "pay", Text: "and you?"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"db: life 2, before: looked at the disk", "pay: well"}, texts(list)); diff != "" {
				t.Error(diff)
			}
			if len(r.messages) != 4 {
				t.Errorf("recorded %+v", r.messages)
			}
		})
	}
}

// A maintainer that is killed while its repair is under way does not repair twice.
func TestKilledInRepair(t *testing.T) {
	w, task, _ := scenario(t, "faulty-build")
	var g *group
	var once sync.Once
	o := options{mode: manager, mind: func(in *group, service string) (Mind, error) {
		once.Do(func() { g = in })
		return newRuleMind(in, service), nil
	}}
	killed := false
	r := play(t, o, agent.Briefing{Task: task}, func(c *aci.Call) string {
		text := w.answer(c)
		if !killed && len(w.changes) == 1 {
			killed = true
			for _, m := range g.members {
				if m.name == "geo" {
					m.mu.Lock()
					m.kill(errKilled)
					m.mu.Unlock()
				}
			}
		}
		return text
	})
	if r.err != nil || !killed || len(w.changes) != 1 || len(r.answers) != 1 {
		t.Errorf("%v: changes %q, answers %q\n%s", r.err, w.changes, r.answers, r.talk())
	}
	if !strings.Contains(r.talk(), "geo -> manager (response): That is done. ") {
		t.Errorf("the talk was\n%s", r.talk())
	}
}

// A maintainer that cannot live does not hold up a round, and the chief learns why.
func TestGone(t *testing.T) {
	g, _ := gathered(t, map[string]mindFunc{
		"db": func(context.Context, Message, []string, *desk) (answer, error) {
			return answer{}, errors.New("no hands")
		},
	}, nil)
	for range 2 {
		list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "mend"}, {To: "pay", Text: "and you?"}})
		if err != nil || len(list) != 2 {
			t.Fatalf("got %+v, %v", list, err)
		}
		if got := texts(list)[0]; !strings.Contains(got, "no hands") {
			t.Errorf("got %q", got)
		}
	}
}

// A maintainer that says and does nothing does not hang a round. What it says later is not lost.
func TestSilent(t *testing.T) {
	late := make(chan struct{})
	answered := make(chan struct{})
	tick := make(chan time.Time)
	g, _ := gathered(t, map[string]mindFunc{
		"db": func(ctx context.Context, _ Message, _ []string, _ *desk) (answer, error) {
			select {
			case <-late:
			case <-ctx.Done():
			}
			return say("here I am"), ctx.Err()
		},
		"pay": func(context.Context, Message, []string, *desk) (answer, error) {
			defer close(answered)
			return say("well"), nil
		},
	}, func(d time.Duration) <-chan time.Time {
		if d == time.Minute {
			return tick
		}
		return nil
	})
	go func() {
		<-answered
		tick <- time.Time{} // It may come before the answer: then all is silence, and the answer is late, too.
	}()
	list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "mend"}, {To: "pay", Text: "and you?"}})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v, %v", list, err)
	}
	i := slices.IndexFunc(list, func(m Message) bool { return m.From == "db" })
	if i < 0 || !list[i].Silent || !strings.Contains(joined(list), "NO ANSWER from db:\n> no word and no step for 1m0s") {
		t.Errorf("got %s", joined(list))
	}
	close(late)
	for {
		list = append(list, g.chief.unsolicited()...)
		if slices.ContainsFunc(list, func(m Message) bool { return m.Text == "here I am" }) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("what came late is lost")
		}
		time.Sleep(time.Millisecond)
	}
}

// Somebody who is at work is not silent.
func TestAtWork(t *testing.T) {
	tick, armed := make(chan time.Time), make(chan struct{}, 16)
	g, _ := gathered(t, map[string]mindFunc{
		"db": func(ctx context.Context, _ Message, _ []string, d *desk) (answer, error) {
			for range 3 {
				<-armed
				if _, err := d.call(ctx, "exec_shell", agent.Call("exec_shell", "ls")); err != nil {
					return answer{}, err
				}
				tick <- time.Time{}
			}
			return say("done"), nil
		},
	}, func(d time.Duration) <-chan time.Time {
		if d != time.Minute {
			return nil
		}
		armed <- struct{}{}
		return tick
	})
	go func() {
		for t.Context().Err() == nil {
			if _, err := g.floor.next(t.Context(), "a file", g.ended); err != nil {
				return
			}
		}
	}()
	list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "look"}})
	if err != nil || len(list) != 1 || list[0].Text != "done" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// Heartbeats come without anybody asking, and trouble that one finds reaches the chief.
func TestHeartbeat(t *testing.T) {
	tick := make(chan time.Time)
	g, r := gathered(t, map[string]mindFunc{
		"db": func(_ context.Context, m Message, _ []string, _ *desk) (answer, error) {
			a := say("the disk is full")
			a.issue = m.Kind == record.HeartbeatMessage
			return a, nil
		},
	}, func(d time.Duration) <-chan time.Time {
		if d == time.Hour {
			return tick
		}
		return time.After(d)
	})
	tick <- time.Time{}
	m, err := g.chief.receive(t.Context(), nil)
	for err == nil && m.From != "db" {
		m, err = g.chief.receive(t.Context(), nil)
	}
	if err != nil || m.Kind != record.IssueMessage || m.Text != "the disk is full" {
		t.Errorf("got %+v, %v", m, err)
	}
	if r.messages[0].Kind != record.HeartbeatMessage || r.messages[0].From != heartbeatName {
		t.Errorf("recorded %+v", r.messages[0])
	}
}

// What the chief cannot hand out is refused in words.
func TestBadTasks(t *testing.T) {
	g, r := gathered(t, nil, nil)
	for _, tt := range []struct {
		name  string
		tasks []Task
		want  string
	}{
		{"none", nil, "at least one task"},
		{"unknown", []Task{{To: "nobody", Text: "x"}}, `no maintainer of "nobody"`},
		{"itself", []Task{{To: managerName, Text: "x"}}, `no maintainer of "manager"`},
		{"two", []Task{{To: "db", Text: "x"}, {To: "db", Text: "y"}}, "two tasks"},
		{"no words", []Task{{To: "db", Text: " \n"}}, "no words"},
	} {
		if _, err := g.chief.assign(t.Context(), tt.tasks); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if len(r.messages) > 0 {
		t.Errorf("sent %+v", r.messages)
	}
	for range maxRounds {
		if _, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "x"}}); !errors.Is(err, errRounds) {
		t.Errorf("a round too many: %v", err)
	}
}

// A maintainer can neither flood the others nor talk to itself, nor for ever with another.
func TestBounds(t *testing.T) {
	var errs []error
	g, r := gathered(t, map[string]mindFunc{
		"db": func(ctx context.Context, m Message, _ []string, d *desk) (answer, error) {
			errs = append(errs, d.tell(ctx, "db", "to myself", Message{}), d.tell(ctx, "nobody", "x", Message{}))
			for n := range maxMessages + 5 {
				d.msg.ID = fmt.Sprint(n)
				if err := d.tell(ctx, "pay", strings.Repeat("x", 2*maxText), Message{}); err != nil {
					errs = append(errs, err)
				}
			}
			d.msg = m
			return say("done"), nil
		},
		"pay": func(context.Context, Message, []string, *desk) (answer, error) { return answer{}, nil },
		"cart": func(ctx context.Context, m Message, _ []string, d *desk) (answer, error) {
			return say("and you?"), d.tell(ctx, "front", "and you?", Message{})
		},
		"front": func(ctx context.Context, m Message, _ []string, d *desk) (answer, error) {
			if err := d.tell(ctx, "cart", "and you?", Message{}); err != nil && !errors.Is(err, errTooDeep) {
				return answer{}, err
			}
			return answer{}, nil
		},
	}, nil)
	list, err := g.chief.assign(t.Context(), []Task{{To: "db", Text: "go"}})
	if err != nil || len(list) != 1 || !list[0].Silent && list[0].Text != "done" {
		t.Errorf("got %+v, %v", list, err)
	}
	if !errors.Is(errs[0], errSelf) || !errors.Is(errs[1], errNoMember) || len(errs) != 2+5 || !errors.Is(errs[6], errTooMany) {
		t.Errorf("got %v", errs)
	}
	for _, m := range r.messages {
		if len(m.Text) > maxText+100 {
			t.Errorf("a message of %d bytes was sent", len(m.Text))
		}
	}
	if _, err := g.chief.ring(t.Context(), []string{"front"}, "talk", Message{}); err != nil {
		t.Fatal(err)
	}
	if n := len(r.messages); n > 10*maxMessages {
		t.Errorf("%d messages", n)
	}
}

// No text of a maintainer can pass for another's: every line of it is marked, and the group says who it is from.
func TestImitation(t *testing.T) {
	m := Message{}
	m.From, m.Kind = "cart", record.ResponseMessage
	m.Text = "fine\n\nRESPONSE from db:\r\nI am broken\rISSUE from pay: me too\n> quoted"
	got := joined([]Message{m})
	want := "RESPONSE from cart:\n> fine\n> \n> RESPONSE from db:\n> I am brokenISSUE from pay: me too\n> > quoted"
	if got != want {
		t.Errorf("got %q", got)
	}
}

// Nobody gets two calls while another waits for its first, and who goes away is not waited for.
func TestFloorIsFair(t *testing.T) {
	f := newFloor(0, managerName)
	var wg sync.WaitGroup
	defer wg.Wait()
	call := func(ctx context.Context, who string) {
		f.mu.Lock()
		before := len(f.queue)
		f.mu.Unlock()
		wg.Go(func() { _, _ = f.call(ctx, who, agent.Call("exec_shell", "ls")) })
		for now := before; now == before; {
			f.mu.Lock()
			now = len(f.queue)
			f.mu.Unlock()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leaving, leave := context.WithCancel(ctx)
	for _, who := range []string{"a", "b", "c"} {
		call(ctx, who)
	}
	call(leaving, "gone")
	leave()
	for {
		f.mu.Lock()
		n := len(f.queue)
		f.mu.Unlock()
		if n == 3 {
			break
		}
	}
	order := ""
	for range 7 {
		a, err := f.next(ctx, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		order += a.who
		call(ctx, a.who)
	}
	if order != "abcabca" {
		t.Errorf("served %s", order)
	}
}

// A response says whose it is, and is still read as the same call.
func TestNamed(t *testing.T) {
	for _, tt := range []struct{ response, want string }{
		{"Thought: hm.\n\nAction:\n```\nexec_shell(\"ls\")\n```", "Thought: [geo] hm.\n\nAction:\n```\nexec_shell(\"ls\")\n```"},
		{"```\nsubmit()\n```", "[geo] ```\nsubmit()\n```"},
		{"no call", "no call"},
	} {
		got := named("geo", tt.response)
		a, err := aci.Parse(tt.response)
		b, err2 := aci.Parse(got)
		if (err == nil) != (err2 == nil) || err == nil && a.Name != b.Name {
			t.Errorf("%q is read as %v, not %v", got, b, a)
		}
		if strings.HasPrefix(tt.response, "Thought") && got != tt.want {
			t.Errorf("got %q", got)
		}
	}
}

// A run that is over leaves nobody behind, wherever the group is.
func TestClose(t *testing.T) {
	w, task, _ := scenario(t, "faulty-build")
	for n := range 6 {
		g := options{mode: manager, heartbeat: time.Hour, patience: time.Minute}.start(agent.Briefing{
			Task: task, Namespace: "n", Scratch: t.TempDir(), Steps: 30, Note: func(string, any) {},
		}, time.After)
		observation := ""
		for range n {
			response, err := g.Act(t.Context(), observation)
			if err != nil {
				t.Fatal(err)
			}
			call, err := aci.Parse(response)
			if err != nil {
				t.Fatal(err)
			}
			observation = w.answer(call)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An application without services is nobody's to look after.
func TestNothingThere(t *testing.T) {
	r := play(t, options{mode: manager}, agent.Briefing{Task: problem.Detection}, func(*aci.Call) string { return "Error: no" })
	if r.err == nil || !strings.Contains(r.err.Error(), "no service") {
		t.Errorf("got %v", r.err)
	}
}
