package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/internal/term"
)

// gamePage is an incident that somebody works on.
type gamePage struct {
	ID, Who, App    string
	Task, Told      string
	Waits           string // what for, before it is one's turn
	Turn            bool   // it is one's turn
	Grading         bool
	Over            bool   // there is nothing to come
	Wrong           string // why there is no verdict, or what was wrong with a form
	Left            string
	Ends            int64 // when the time is up, in Unix milliseconds
	Used, Steps     int
	Acting          string
	Forms           []actionForm
	Answer          *answerForm
	Services        []string
	Levels          []string // of logs
	Query           string
	Minutes         int
	Played          []playedRow
	Seen            *sight
	Ended           *Ended
	Results         []fact
	Title           string // what was wrong
	Faults          []string
	Took            string
	Stamp, Question string // change when what they stand for does
}

type playedRow struct {
	Step   int
	Call   string
	Failed bool
	Took   float64
	Now    bool
}

// game finds the game of a request.
func (s *Site) game(r *http.Request) (*game, error) {
	id := r.PathValue("id")
	if g := s.games.find(id); g != nil {
		return g, nil
	}
	return nil, fail(http.StatusNotFound, "nobody works on %s; it may be over, and among the runs", clip(id))
}

// showGame answers with an incident.
func (s *Site) showGame(w http.ResponseWriter, r *http.Request) error {
	g, err := s.game(r)
	if err != nil {
		if run, found := s.shelf.find(r.PathValue("id")); found == nil {
			http.Redirect(w, r, Prefix+"runs/"+run.ID, http.StatusSeeOther)
			return nil
		}
		return err
	}
	return s.renderGame(w, r, http.StatusOK, g, "")
}

func (s *Site) renderGame(w http.ResponseWriter, r *http.Request, status int, g *game, wrong string) error {
	p := g.page(r.URL.Query())
	if !p.Over && p.Told == "" {
		switch st, err := g.sessions.State(r.Context(), g.id); {
		case err != nil:
			return err
		case st.Place > 0:
			p.Waits = fmt.Sprintf("All places are taken: it is number %d in the line.", st.Place)
		default:
			p.Waits = "The system is being set up, which takes a while."
		}
	}
	p.Wrong = visible(wrong)
	if p.Ended != nil && s.Library != nil {
		if one, err := s.Library.Find(p.Ended.Problem); err == nil {
			p.Title = "Nothing was wrong."
			if one.Faulty() {
				p.Title = one.Document.Title
			}
			for _, f := range one.Faults() {
				p.Faults = append(p.Faults, f.Kind+" in "+f.Target)
			}
		}
	}
	render(w, r, status, "game", view{Title: "An incident", Place: "play", Script: "play.js", Data: p})
	return nil
}

// page is what there is to see of a game.
func (g *game) page(q url.Values) *gamePage {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &gamePage{
		ID: g.id, Who: g.who, App: g.app.Title, Used: len(g.played), Steps: g.steps, Acting: clip(g.acting),
		Question: g.question, Minutes: shownMinutes, Over: g.ended != nil || g.wrong != "",
	}
	p.Grading = !g.over.IsZero() && !p.Over
	if g.wrong != "" {
		p.Waits = "There is no verdict: " + visible(g.wrong)
	}
	for _, one := range g.app.Services {
		p.Services = append(p.Services, one.Name)
	}
	slices.Sort(p.Services)
	if g.told != nil {
		p.Task, p.Told = g.told.Task, strings.TrimSpace(g.told.Description)
		p.Turn = g.over.IsZero()
		ends := g.turn.Add(g.limit)
		p.Ends = ends.UnixMilli()
		p.Left = countdown(time.Until(ends))
		p.Query = fmt.Sprintf(queryOfGame, g.told.Namespace)
		actions := aci.Actions(g.told.Task)
		p.Forms = formsOf(actions, g.told.Namespace)
		if p.Turn {
			p.Answer = &answerForm{g.question, term.SystemLevels, term.FaultTypes, p.Services, p.Task == term.Incident}
		}
		if !g.over.IsZero() {
			p.Took = seconds(g.over.Sub(g.turn).Seconds())
		}
	}
	shown := g.looked
	if n, err := strconv.Atoi(q.Get("step")); err == nil && n >= 1 && n <= len(g.played) {
		shown = n
	}
	for i := range g.played {
		one := &g.played[i]
		p.Played = append(p.Played, playedRow{i + 1, clip(one.name()), one.Failed, one.Took.Seconds(), i+1 == shown})
	}
	if shown > 0 {
		p.Seen = sightOf(&g.played[shown-1], g.app, fmt.Sprintf("%splay/%s/text/%d", Prefix, g.id, shown))
		if p.Seen.Metrics != nil {
			p.Query = g.played[shown-1].lens.about
		}
	}
	if g.ended != nil {
		p.Ended = g.ended
		for _, name := range sortedKeys(g.ended.Results) {
			p.Results = append(p.Results, fact{visible(name), clip(fmt.Sprint(g.ended.Results[name]))})
		}
	}
	p.Stamp = fmt.Sprint(g.told != nil, p.Grading, p.Over, shown)
	return p
}

// countdown is the time that is left.
func countdown(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// textOfStep answers with all that came of a step.
func (s *Site) textOfStep(w http.ResponseWriter, r *http.Request) error {
	g, err := s.game(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("step"))
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || n < 1 || n > len(g.played) {
		return fail(http.StatusNotFound, "there is no such step")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(w, r, http.StatusOK, []byte(visible(g.played[n-1].Observation)))
	return nil
}

// actInGame takes the step that a form asks for.
func (s *Site) actInGame(w http.ResponseWriter, r *http.Request) error {
	g, err := s.game(r)
	if err != nil {
		return err
	}
	q, err := readForm(w, r)
	if err != nil {
		return err
	}
	response, l, err := g.asked(q)
	if err == nil && response != "" {
		_, err = g.act(r.Context(), response, l)
	} else if err == nil {
		err = g.giveUp(r.Context())
	}
	if err != nil {
		return s.renderGame(w, r, statusOf(err), g, err.Error())
	}
	http.Redirect(w, r, Prefix+"play/"+g.id, http.StatusSeeOther)
	return nil
}

// asked is the step that a form asks for; it is empty if that is to give up.
func (g *game) asked(q url.Values) (response string, l lens, err error) {
	g.mu.Lock()
	told, question := g.told, g.question
	g.mu.Unlock()
	switch {
	case told == nil:
		return "", l, errNotYet
	case q.Has("look"):
		if response, l, err = lookFor(q.Get("look"), told.Namespace, q); err != nil {
			err = fail(http.StatusUnprocessableEntity, "%v", err)
		}
		return response, l, err
	case q.Has("call"):
		response, err = callOf(aci.Actions(told.Task), q.Get("call"), q)
		return response, lens{kind: byForm}, err
	case q.Get("submit") != "":
		if asked := q.Get("submit"); asked != question {
			return "", l, fail(http.StatusConflict, "that answers another question than the one at hand")
		}
		response, err = submission(question, q)
		return response, lens{kind: byForm}, err
	case q.Has("give-up"):
		return "", l, nil
	}
	return "", l, fail(http.StatusUnprocessableEntity, "the form asks for nothing")
}

// interruptGame ends the command that is under way.
func (s *Site) interruptGame(w http.ResponseWriter, r *http.Request) error {
	g, err := s.game(r)
	if err != nil {
		return err
	}
	if err := g.interrupt(r.Context()); err != nil {
		return err
	}
	http.Redirect(w, r, Prefix+"play/"+g.id, http.StatusSeeOther)
	return nil
}
