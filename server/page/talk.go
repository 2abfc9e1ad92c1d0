package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/aiopslab/aiopslab/record"
)

// said is a message between members of a group.
type said struct {
	record.Message
	At  float64
	Seq int
}

// turn is a decision of a member of a group.
type turn struct {
	record.Turn
	At float64
}

// The measures of a conversation.
const (
	laneWide  = 96.0
	laneLeft  = 52.0
	talkTop   = 30.0
	talkRow   = 24.0
	talkLanes = 14  // that are drawn; who is behind them shares the last
	talkMost  = 200 // messages that are drawn, the newest
)

// talk is the conversation of a group as the page has it.
type talk struct {
	*record.Group
	Drawing  template.HTML
	Messages []shownMessage
	Left     int // messages that are not drawn
	Turns    []fact
}

// shownMessage is a message in words.
type shownMessage struct {
	said
	excerpt
	Link string
}

// talkOf draws the conversation of a run; nil if its agent is one.
func (p *runPage) talkOf(at float64) *talk {
	s := p.story
	if s.Group == nil {
		return nil
	}
	t := &talk{Group: s.Group, Left: max(0, len(s.Messages)-talkMost)}
	shown := s.Messages[t.Left:]
	for _, m := range shown {
		t.Messages = append(t.Messages, shownMessage{m, excerptOf(m.Text, p.textLink(m.Seq, "text")), p.href(m.At)})
	}
	turns := map[string]int{}
	for _, one := range s.Turns {
		turns[one.Who]++
	}
	for _, m := range s.Group.Members {
		t.Turns = append(t.Turns, fact{
			visible(m.Name), visible(m.Role) + ", " + plural(turns[m.Name], "turn"),
		})
	}
	t.Drawing = drawTalk(s.Group, shown, at, p.href)
	return t
}

// lanes are the members of a group, each with its place. Who speaks without being a member gets one as well.
func lanes(g *record.Group, list []said) (names []string) {
	for _, m := range g.Members {
		names = append(names, m.Name)
	}
	for _, m := range list {
		for _, who := range []string{m.From, m.To} {
			if !slices.Contains(names, who) {
				names = append(names, who)
			}
		}
	}
	return names
}

// drawTalk draws who said what to whom: a lane for each member, an arrow for each message, downwards by time.
func drawTalk(g *record.Group, list []said, at float64, href func(float64) string) template.HTML {
	names := lanes(g, list)
	n := min(len(names), talkLanes)
	width := laneLeft + laneWide*float64(max(n, 1)) + 8
	height := talkTop + talkRow*float64(len(list)) + 10
	words := fmt.Sprintf("%s between %s, downwards by time. The list below has the same in words.",
		plural(len(list), "message"), plural(len(names), "member"))
	d := newDrawing(width, height, words)
	d.class = "talk"
	x := func(who string) float64 {
		return laneLeft + laneWide*(float64(min(max(slices.Index(names, who), 0), n-1))+0.5)
	}
	for i, name := range names[:n] {
		if i == n-1 && len(names) > n {
			name = "others"
		}
		d.text("strong", "middle", x(names[i]), 16, shorter(name, 15))
		d.line("lane", x(names[i]), talkTop-6, x(names[i]), height-4)
	}
	for i, m := range list {
		d.message(m, talkTop+talkRow*float64(i)+talkRow/2, x(m.From), x(m.To), href(m.At), m.At <= at)
	}
	return d.html()
}

// message draws one as an arrow from lane to lane.
func (d *drawing) message(m said, y, from, to float64, link string, past bool) {
	class := "say " + map[string]string{
		record.TaskMessage: "task", record.ResponseMessage: "response", record.IssueMessage: "issue",
	}[m.Kind]
	if !past {
		class += " later"
	}
	d.link(link, fmt.Sprintf("%s to %s, %s: %s", m.From, m.To, cmp.Or(m.Kind, "message"), firstLine(m.Text)))
	d.text("", "end", laneLeft-6, y+4, tick(m.At))
	if from == to {
		fmt.Fprintf(d, `<circle class="%s" cx="%s" cy="%s" r="4"/>`, class, num(from), num(y))
		d.end()
		return
	}
	ahead := 1.0
	if to < from {
		ahead = -1
	}
	d.line(class, from, y, to-5*ahead, y)
	d.path(class+" head", fmt.Sprintf("M%s %sl%s -4v8z", num(to), num(y), num(-8*ahead)))
	d.rect("hit", min(from, to), y-talkRow/2, max(from, to)-min(from, to), talkRow, 0)
	d.text("said", "middle", (from+to)/2, y-3, shorter(m.Kind, 14))
	d.end()
}

// shorter is a text of so many characters at most.
func shorter(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
