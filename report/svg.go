package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

const (
	figureWidth = 760.0
	margin      = 16.0
	lineHeight  = 20.0
	letter      = 7.4 // how wide a letter is about, in the font of 12
)

// style has two sets of colours for what is not data, so that a figure can be read on light and on
// dark pages.
const style = `<style>
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.page { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.axis { stroke: #57606a; stroke-width: 1 }
.whisker { stroke: #1f2328; stroke-width: 1.5 }
.dot { fill: #1f2328 }
.halo { stroke: #ffffff; stroke-width: 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.page { fill: #0d1117 }
.grid { stroke: #30363d }
.axis { stroke: #8b949e }
.whisker { stroke: #e6edf3 }
.dot { fill: #e6edf3 }
.halo { stroke: #0d1117 }
}
</style>
`

// palette are Okabe and Ito's colours, which colour-blind people can tell apart, without black and
// yellow, which vanish on one of the pages; ink is what can be read on each.
var palette = []struct{ fill, ink string }{
	{"#0072b2", "#ffffff"},
	{"#e69f00", "#000000"},
	{"#009e73", "#ffffff"},
	{"#cc79a7", "#000000"},
	{"#d55e00", "#ffffff"},
	{"#56b4e9", "#000000"},
	{"#8a8a8a", "#ffffff"},
	{"#8c6d31", "#ffffff"},
}

// dashes tell lines apart whose colours are the same: those beyond the palette.
var dashes = []string{"", "7 3", "2 3", "9 3 2 3"}

func colour(i int) string { return palette[i%len(palette)].fill }
func ink(i int) string    { return palette[i%len(palette)].ink }
func dash(i int) string   { return dashes[i/len(palette)%len(dashes)] }

// drawing is a figure under way.
type drawing struct{ bytes.Buffer }

// num writes a coordinate: a tenth of a pixel is enough, and the same everywhere.
func num(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // A builder takes all.
	return b.String()
}

func (d *drawing) rect(x, y, w, h float64, fill string) {
	fmt.Fprintf(d, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", num(x), num(y), num(w), num(h), fill)
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

// dot marks a point.
func (d *drawing) dot(x, y float64) {
	fmt.Fprintf(d, `<circle class="dot" cx="%s" cy="%s" r="4"/>`+"\n", num(x), num(y))
}

// text writes s at a point: anchor is start, middle or end.
func (d *drawing) text(anchor string, x, y float64, s string) {
	fmt.Fprintf(d, `<text x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", num(x), num(y), anchor, escape(s))
}

// inside writes text on a colour of the palette.
func (d *drawing) inside(x, y float64, i int, s string) {
	fmt.Fprintf(d, `<text x="%s" y="%s" text-anchor="middle" style="fill: %s">%s</text>`+"\n", num(x), num(y), ink(i),
		escape(s))
}

func (d *drawing) polyline(i int, points []string) {
	pattern := ""
	if p := dash(i); p != "" {
		pattern = ` stroke-dasharray="` + p + `"`
	}
	fmt.Fprintf(d, `<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>`+"\n", colour(i), pattern,
		strings.Join(points, " "))
}

// legend names the colours from a height on, and returns the height below it.
func (d *drawing) legend(y float64, names []string) float64 {
	x := margin
	for i, n := range names {
		n = cell(n)
		w := 18 + letter*float64(len([]rune(n))) + 18
		if x+w > figureWidth && x > margin {
			x, y = margin, y+lineHeight
		}
		d.rect(x, y, 12, 12, colour(i))
		d.text("start", x+18, y+10.5, n)
		x += w
	}
	return y + lineHeight + 6
}

// figure is the whole document around a drawing.
func (d *drawing) figure(title string, height float64) []byte {
	var b bytes.Buffer
	w, h := num(figureWidth), num(height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+
		"\n", w, h, w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", escape(title), style)
	fmt.Fprintf(&b, `<rect class="page" width="%s" height="%s"/>`+"\n", w, h)
	fmt.Fprintf(&b, `<text class="title" x="%s" y="%s">%s</text>`+"\n", num(margin), num(margin+12), escape(title))
	b.Write(d.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}
