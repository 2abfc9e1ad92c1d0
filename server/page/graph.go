package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/report"
)

// The measures of a graph.
const (
	nodeHeight = 24.0
	noteHeight = 14.0 // of a second line
	noteWide   = 104.0
	rowGap     = 10.0
	layerGap   = 46.0
	letterWide = 6.4
)

// traffic is what goes through an application now.
type traffic struct {
	notes map[string]string     // a short line about a service
	calls map[[2]string]float64 // a second, by who calls and who is called; nil if nobody knows
	link  func(service string) string
}

// busy is how wide the line of a call is drawn. Stores make no spans, so nobody knows how often they are called.
func (t *traffic) busy(from string, called *node) (class, words string) {
	to := called.Name
	if t == nil || t.calls == nil {
		return "", from + " calls " + to
	}
	rate := t.calls[[2]string{from, to}]
	switch {
	case rate <= 0 && called.Kind != "service" && called.Kind != "":
		return "", from + " calls " + to
	case rate <= 0:
		return " idle", fmt.Sprintf("%s has not called %s in the last minute", from, to)
	case rate < 1:
		class = " w1"
	case rate < 10:
		class = " w2"
	default:
		class = " w3"
	}
	return class, fmt.Sprintf("%s calls %s %s times a second", from, to, report.Figure(rate))
}

// node is a service where it is drawn.
type node struct {
	app.Service
	layer, row int
	x, y, w, h float64
}

// graph is an application: who calls whom, from left to right.
type graph struct {
	nodes  map[string]*node
	layers [][]*node
	high   float64 // how high a node is
}

// newGraph lays an application out in layers: who calls stands left of whom it calls, as far as there is no circle.
func newGraph(a *app.App, high float64) *graph {
	g := &graph{nodes: map[string]*node{}, high: high}
	for _, s := range a.Services {
		g.nodes[s.Name] = &node{Service: s}
	}
	g.rank(a)
	for _, s := range a.Services {
		n := g.nodes[s.Name]
		for len(g.layers) <= n.layer {
			g.layers = append(g.layers, nil)
		}
		n.row = len(g.layers[n.layer])
		g.layers[n.layer] = append(g.layers[n.layer], n)
	}
	for range 6 { // A few sweeps, and lines cross little.
		g.order()
	}
	g.place()
	return g
}

// rank gives each service the layer behind the longest way to it. A call that would close a circle does not count.
func (g *graph) rank(a *app.App) {
	const (
		fresh = iota
		open
		done
	)
	state := map[string]int{}
	var order []string
	back := map[[2]string]bool{}
	var walk func(name string)
	walk = func(name string) {
		state[name] = open
		for _, to := range g.nodes[name].Calls {
			switch {
			case g.nodes[to] == nil:
			case state[to] == open:
				back[[2]string{name, to}] = true
			case state[to] == fresh:
				walk(to)
			}
		}
		state[name] = done
		order = append(order, name)
	}
	names := []string{a.Frontend.Service}
	for _, s := range a.Services {
		names = append(names, s.Name)
	}
	for _, name := range names {
		if g.nodes[name] != nil && state[name] == fresh {
			walk(name)
		}
	}
	slices.Reverse(order)
	for _, name := range order {
		for _, to := range g.nodes[name].Calls {
			if n := g.nodes[to]; n != nil && !back[[2]string{name, to}] {
				n.layer = max(n.layer, g.nodes[name].layer+1)
			}
		}
	}
}

// order sorts each layer by where its neighbours are, first those on the left, then those on the right.
func (g *graph) order() {
	callers := map[string][]*node{}
	for _, layer := range g.layers {
		for _, n := range layer {
			for _, to := range n.Calls {
				callers[to] = append(callers[to], n)
			}
		}
	}
	sort := func(layer []*node, neighbours func(*node) []*node) {
		middle := map[*node]float64{}
		for _, n := range layer {
			list := neighbours(n)
			middle[n] = float64(n.row)
			if len(list) > 0 {
				sum := 0.0
				for _, m := range list {
					sum += (float64(m.row) + 0.5) / float64(len(g.layers[m.layer]))
				}
				middle[n] = sum / float64(len(list)) * float64(len(layer))
			}
		}
		slices.SortStableFunc(layer, func(a, b *node) int { return cmp.Compare(middle[a], middle[b]) })
		for i, n := range layer {
			n.row = i
		}
	}
	for _, layer := range g.layers {
		sort(layer, func(n *node) []*node { return callers[n.Name] })
	}
	for i := len(g.layers) - 1; i >= 0; i-- {
		sort(g.layers[i], func(n *node) (list []*node) {
			for _, to := range n.Calls {
				if m := g.nodes[to]; m != nil {
					list = append(list, m)
				}
			}
			return list
		})
	}
}

// place gives the nodes their places: layers as wide as their longest name, each in the middle of the height.
func (g *graph) place() {
	tallest := 0
	for _, layer := range g.layers {
		tallest = max(tallest, len(layer))
	}
	x := 8.0
	for _, layer := range g.layers {
		wide := 60.0
		if g.high > nodeHeight {
			wide = noteWide
		}
		for _, n := range layer {
			wide = max(wide, letterWide*float64(len(n.Name))+18)
		}
		row := g.high + rowGap
		top := 8 + row*float64(tallest-len(layer))/2
		for i, n := range layer {
			n.x, n.y, n.w, n.h = x, top+row*float64(i), wide, g.high
		}
		x += wide + layerGap
	}
}

// drawGraph draws an application. Red has the services that are not well, with why; now is what goes through it, or
// nil.
func drawGraph(a *app.App, red map[string]string, now *traffic) template.HTML {
	high := nodeHeight
	if now != nil {
		high += noteHeight
	}
	g := newGraph(a, high)
	width, height := 60.0, 40.0
	for _, n := range g.nodes {
		width, height = max(width, n.x+n.w+8), max(height, n.y+n.h+10)
	}
	words := fmt.Sprintf("%s: %s and whom they call", a.Title, plural(len(a.Services), "service"))
	if len(red) > 0 {
		words += "; not well: "
		for i, name := range sortedKeys(red) {
			if i > 0 {
				words += ", "
			}
			words += name
		}
	}
	d := newDrawing(width, height, words)
	d.class = "graph"
	for _, s := range a.Services {
		from := g.nodes[s.Name]
		for _, to := range s.Calls {
			if n := g.nodes[to]; n != nil {
				class, words := now.busy(s.Name, n)
				if red[s.Name] != "" && red[to] != "" {
					class += " red"
				}
				fmt.Fprintf(d, "<g><title>%s</title>", escape(words))
				d.edge("edge"+class, from, n)
				d.WriteString("</g>")
			}
		}
	}
	for _, s := range a.Services {
		n := g.nodes[s.Name]
		class, label := "node", n.Name
		switch {
		case red[n.Name] != "":
			class, label = "node red", "! "+n.Name
		case n.Name == a.Frontend.Service:
			class = "node front"
		case n.Kind != "service" && n.Kind != "":
			class = "node store"
		}
		d.node(n, class, label, cmp.Or(red[n.Name], n.Kind, "service"), now)
	}
	return d.html()
}

// node draws a service: its name and, if it is told, what goes through it.
func (d *drawing) node(n *node, class, label, title string, now *traffic) {
	if now == nil {
		fmt.Fprintf(d, "<g><title>%s</title>", escape(title))
		defer d.WriteString("</g>")
	} else {
		d.link(now.link(n.Name), n.Name+": "+title)
		defer d.end()
	}
	d.rect(class, n.x, n.y, n.w, n.h, 5)
	d.text("", "middle", n.x+n.w/2, n.y+16, label)
	if now != nil {
		d.text("note", "middle", n.x+n.w/2, n.y+16+noteHeight, now.notes[n.Name])
	}
}

// edge draws a call as a curve with a tip.
func (d *drawing) edge(class string, from, to *node) {
	x1, y1, x2, y2 := from.x+from.w, from.y+from.h/2, to.x-4, to.y+to.h/2
	if to.layer <= from.layer { // Back, or within a layer: around the right side.
		x2 = to.x + to.w + 4
		out := max(x1, x2) + 24
		d.curve(class, x1, y1, out, out, x2, y2)
		d.path("tip", fmt.Sprintf("M%s %sl6 -3v6z", num(x2-2), num(y2)))
		return
	}
	mid := (x2 - x1) / 2
	d.curve(class, x1, y1, x1+mid, x2-mid, x2, y2)
	d.path("tip", fmt.Sprintf("M%s %sl-6 -3v6z", num(x2+3), num(y2)))
}

// curve draws one that begins and ends level, on its way to a and from b.
func (d *drawing) curve(class string, x1, y1, a, b, x2, y2 float64) {
	d.path(class, fmt.Sprintf("M%s %sC%s %s %s %s %s %s", num(x1), num(y1), num(a), num(y1), num(b), num(y2), num(x2),
		num(y2)))
}
