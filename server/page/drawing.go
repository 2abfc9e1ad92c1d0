package page

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// drawing is a picture under way. Colours are those of the page's style, by class, so that they are right on light and
// on dark pages; all text is escaped.
type drawing struct {
	bytes.Buffer
	width, height float64
	title         string // what it shows, for those who do not see it
	class         string
}

func newDrawing(width, height float64, title string) *drawing {
	return &drawing{width: width, height: height, title: title}
}

// num writes a coordinate: a tenth of a pixel is enough.
func num(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(visible(s))) // A builder takes all.
	return b.String()
}

func (d *drawing) rect(class string, x, y, w, h, round float64) {
	fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`, class, num(x), num(y), num(w), num(h),
		num(round))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// text writes at a point: anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(d, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, num(x), num(y), anchor, escape(s))
}

// path draws a path by SVG's own commands.
func (d *drawing) path(class, commands string) {
	fmt.Fprintf(d, `<path class="%s" d="%s"/>`, class, commands)
}

// link begins a link, which end ends. The keyboard passes it by: what it leads to has a link in the text.
func (d *drawing) link(to, title string) {
	fmt.Fprintf(d, `<a href="%s" tabindex="-1"><title>%s</title>`, escape(to), escape(title))
}

func (d *drawing) end() { d.WriteString("</a>") }

// html is the whole picture.
func (d *drawing) html() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="%s" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">%s</svg>`,
		d.class, num(d.width), num(d.height), num(d.width), num(d.height), escape(d.title), d.String()))
}
