package page

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// person is what the record calls an agent that is a person; a name comes behind a colon.
	person = "human"
	// maxName is how long a name may be, in characters.
	maxName = 40
)

// pace is how much somebody may take.
type pace struct {
	Name, Label string
	steps       int
	time        time.Duration
}

// paces are the choices; the first is the default.
var paces = []pace{
	{"steady", "100 steps, 30 minutes", 100, 30 * time.Minute},
	{"agent", "30 steps, 15 minutes, as agents have", session.DefaultSteps, session.DefaultTime},
	{"easy", "300 steps, 2 hours", 300, 2 * time.Hour},
}

// mood is what else goes on.
type mood struct {
	Name, Label, noise string
	decoys             []string
}

var moods = []mood{
	{"usual", "as in most systems", "calm", nil},
	{"quiet", "nothing", "none", nil},
	{"rough", "much, and some of it misleads", "busy", []string{"fault", "telemetry"}},
}

// playPage is where incidents are chosen, and who solves them is shown.
type playPage struct {
	Hosted  bool // there are sessions here
	Wrong   string
	Name    string
	Choices []choice
	Paces   []pace
	Moods   []mood
	Pace    string
	Mood    string
	Open    []openGame
	Tabs    []tab
	People  *board // nil on the other tab
	MaxName int
}

type openGame struct {
	ID, Who string
	App     string
	Begun   time.Time
}

// play answers with the page to begin at.
func (s *Site) play(w http.ResponseWriter, r *http.Request) error {
	return s.showPlay(w, r, http.StatusOK, r.URL.Query(), "")
}

func (s *Site) showPlay(w http.ResponseWriter, r *http.Request, status int, q url.Values, wrong string) error {
	p := &playPage{
		Hosted: s.sessions != nil && s.Library != nil, Wrong: wrong, Name: nameOfPerson(q.Get("name")), Paces: paces,
		Moods: moods, Pace: q.Get("pace"), Mood: q.Get("mood"), MaxName: maxName,
	}
	people := q.Get("show") == "people"
	p.Tabs = []tab{
		{"Work on an incident", Prefix + "play", !people}, {"People", Prefix + "play?show=people", people},
	}
	if people {
		x, err := s.shelf.index()
		if err != nil {
			return err
		}
		p.People = boardOf(runsOfPeople(x), newFilter(url.Values{}))
		p.People.sortByTime()
	} else if p.Hosted {
		p.Choices = s.wishes(q)
		for _, g := range s.games.open() {
			p.Open = append(p.Open, openGame{g.id, g.who, g.app.Title, g.begun})
		}
	}
	render(w, r, status, "play", view{Title: "Play", Place: "play", Script: "play.js", Data: p})
	return nil
}

// wishes are what can be chosen: applications, tasks and levels of the problems that can be run.
func (s *Site) wishes(q url.Values) []choice {
	apps, tasks, levels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, one := range s.playable(url.Values{}) {
		apps[one.App.Name], tasks[string(one.Task)] = true, true
		if l := levelOf(one); l != "" {
			levels[l] = true
		}
	}
	var order []string
	for _, t := range problem.Tasks {
		if tasks[string(t)] {
			order = append(order, string(t))
		}
	}
	return []choice{
		{"app", "Application", q.Get("app"), sortedKeys(apps)},
		{"task", "Task", q.Get("task"), order},
		{"level", "Level, of operations alone", q.Get("level"), sortedKeys(levels)},
	}
}

// levelOf is the level of an operation; others have none.
func levelOf(p *problem.Problem) string {
	if g := p.Goal(); g != nil {
		return g.Level
	}
	return ""
}

// playable are the problems that can be run here and are as somebody wishes.
func (s *Site) playable(q url.Values) (list []*problem.Problem) {
	fits := func(want, has string) bool { return want == "" || want == has }
	for _, one := range s.Library.Problems {
		if fits(q.Get("app"), one.App.Name) && fits(q.Get("task"), string(one.Task)) &&
			fits(q.Get("level"), levelOf(one)) && s.sessions.Lacks(one) == "" {
			list = append(list, one)
		}
	}
	return list
}

// maxForm is how long a form may be.
const maxForm = 64 << 10

// readForm reads a form. Its connection has no deadline any more: what the form asks for takes its time.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, fail(http.StatusBadRequest, "the form cannot be read, or is longer than %d bytes", maxForm)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // Not every connection has deadlines.
	return r.PostForm, nil
}

// errNotHosted is the error of who wants to play where there are no sessions.
var errNotHosted = fail(http.StatusNotFound, "there are no incidents to work on here; 'aiopslab serve' has them")

// beginGame draws a problem that is as somebody wishes, and begins to work on it.
func (s *Site) beginGame(w http.ResponseWriter, r *http.Request) error {
	if s.sessions == nil || s.Library == nil {
		return errNotHosted
	}
	q, err := readForm(w, r)
	if err != nil {
		return err
	}
	if long := q.Get("name"); len([]rune(strings.TrimSpace(long))) > maxName {
		return s.showPlay(w, r, http.StatusUnprocessableEntity, q,
			"A name has "+strconv.Itoa(maxName)+" characters at most.")
	}
	list := s.playable(q)
	if len(list) == 0 {
		return s.showPlay(w, r, http.StatusUnprocessableEntity, q, "There is no incident like that. Choose less.")
	}
	one := list[rand.IntN(len(list))]
	how, what := paces[0], moods[0]
	for _, p := range paces {
		if p.Name == q.Get("pace") {
			how = p
		}
	}
	for _, m := range moods {
		if m.Name == q.Get("mood") {
			what = m
		}
	}
	name := nameOfPerson(q.Get("name"))
	agent := person
	if name != "" {
		agent += ":" + name
	}
	id, err := s.sessions.Begin(r.Context(), Wish{
		Problem: one.ID, Name: agent, Noise: what.noise, Decoys: what.decoys, MaxSteps: how.steps, MaxTime: how.time,
	})
	if err != nil {
		return s.showPlay(w, r, statusOf(err), q, "It cannot be begun: "+err.Error())
	}
	g := &game{
		id: id, who: name, app: one.App, steps: how.steps, limit: how.time, begun: time.Now(), sessions: s.sessions,
		ctx: s.ctx, more: make(chan struct{}),
	}
	s.games.add(g)
	go g.follow()
	http.Redirect(w, r, Prefix+"play/"+id, http.StatusSeeOther)
	return nil
}

// nameOfPerson is a name as it is kept: one line of what can be seen, cut if it is long.
func nameOfPerson(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), maxName)]))
}

// runsOfPeople are the runs whose agent is a person, here or at a terminal.
func runsOfPeople(x *index.Index) (list []*index.Run) {
	for i := range x.Runs {
		if a := x.Runs[i].Agent; a == person || strings.HasPrefix(a, person+":") {
			list = append(list, &x.Runs[i])
		}
	}
	return list
}

// sortByTime puts who is faster first, of those who solved as much.
func (b *board) sortByTime() {
	slices.SortStableFunc(b.Rows, func(x, y boardRow) int {
		return cmp.Or(-cmp.Compare(x.Share.Value, y.Share.Value), -cmp.Compare(x.Share.Of, y.Share.Of),
			cmp.Compare(x.Seconds, y.Seconds))
	})
	for i := range b.Rows {
		b.Rows[i].Rank = i + 1
	}
}

// Person is the name of who ran, without what says that it is a person.
func (r boardRow) Person() string {
	if name, ok := strings.CutPrefix(r.Agent, person+":"); ok {
		return name
	}
	return "somebody without a name"
}
