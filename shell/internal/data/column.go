package data

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// screenWidth is how wide column without -t makes its output.
const screenWidth = 80

var column = tool.Tool{
	Name: "column", Options: "t,table s:,separator o:,output-separator c:,output-width x,fillrows N:,table-columns " +
		"R:,table-right n e",
	Args: "[-t] [-s SEP] [-o SEP] [FILE]...", Help: "Print lists in columns; -t makes a table of fields",
	Run: func(_ context.Context, c *tool.Call) error {
		var rows [][]string
		if names := c.Opts.Get("N", ""); names != "" {
			rows = append(rows, strings.Split(names, ","))
		}
		separators := c.Opts.Get("s", "")
		err := c.EachLine(c.Args, func(line []byte, _ bool) error {
			text := string(line)
			switch {
			case strings.TrimSpace(text) == "":
			case separators != "":
				rows = append(rows, splitAny(text, separators))
			default:
				rows = append(rows, strings.Fields(text))
			}
			return nil
		})
		if !c.Opts.Has("t") {
			fill(c, rows)
			return err
		}
		table(c, rows, c.Opts.Get("o", "  "))
		return err
	},
}

// splitAny cuts a text at each of some characters.
func splitAny(text, separators string) []string {
	fields := []string{""}
	for _, r := range text {
		if strings.ContainsRune(separators, r) {
			fields = append(fields, "")
		} else {
			fields[len(fields)-1] += string(r)
		}
	}
	return fields
}

// table prints rows with their fields below one another.
func table(c *tool.Call, rows [][]string, gap string) {
	var widths []int
	for _, row := range rows {
		for i, field := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(field))
		}
	}
	for _, row := range rows {
		for i, field := range row {
			c.Out.WriteString(field)
			if i < len(row)-1 {
				c.Out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(field)) + gap)
			}
		}
		c.Out.WriteByte('\n')
	}
}

// fill prints lines one below the other, in as many columns as the screen has room for.
func fill(c *tool.Call, rows [][]string) {
	var items []string
	width := 0
	for _, row := range rows {
		item := strings.Join(row, " ")
		items = append(items, item)
		width = max(width, utf8.RuneCountInString(item))
	}
	width = (width/8 + 1) * 8
	columns := max(screenWidth/width, 1)
	lines := (len(items) + columns - 1) / columns
	for line := range lines {
		var b strings.Builder
		for i := line; i < len(items); i += lines {
			b.WriteString(items[i])
			if i+lines < len(items) {
				b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(items[i])))
			}
		}
		c.Out.Line(b.String())
	}
}
