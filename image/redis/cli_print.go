package redis

import (
	"fmt"
	"strconv"
	"strings"
)

func (c *cli) print(r reply, asText bool) {
	switch {
	case c.format == 'c':
		fmt.Fprintln(c.env.Stdout, formatCSV(r))
	case c.format == 's' && !asText:
		fmt.Fprint(c.env.Stdout, formatStandard(r, ""))
	default:
		s := formatRaw(r)
		if r.kind == failure {
			s += "\n"
		}
		fmt.Fprintln(c.env.Stdout, s)
	}
}

func formatRaw(r reply) string {
	if r.items == nil {
		return strings.TrimPrefix(r.text, "txt:")
	}
	var list []string
	for _, i := range r.items {
		list = append(list, formatRaw(i))
	}
	return strings.Join(list, "\n")
}

func formatCSV(r reply) string {
	switch {
	case r.null:
		return "NULL"
	case r.kind == failure:
		return "ERROR," + quote(r.text)
	case r.kind == bulk || r.kind == simple:
		return quote(r.text)
	case r.items != nil:
		var list []string
		for _, i := range r.items {
			list = append(list, formatCSV(i))
		}
		return strings.Join(list, ",")
	}
	return r.text
}

// formatStandard is a reply as it is shown on a terminal.
func formatStandard(r reply, indent string) string {
	switch {
	case r.null:
		return "(nil)\n"
	case r.kind == failure:
		return "(error) " + r.text + "\n"
	case r.kind == simple:
		return r.text + "\n"
	case r.kind == integer:
		return "(integer) " + r.text + "\n"
	case r.kind == ',':
		return "(double) " + r.text + "\n"
	case r.kind == '#':
		return map[string]string{"t": "(true)\n", "f": "(false)\n"}[r.text]
	case r.kind == '=':
		return strings.TrimPrefix(r.text, "txt:") + "\n"
	case r.kind == bulk:
		return quote(r.text) + "\n"
	case r.kind == '%':
		return formatMap(r, indent)
	case len(r.items) == 0:
		if r.kind == '~' {
			return "(empty set)\n"
		}
		return "(empty array)\n"
	}
	mark := ")"
	if r.kind == '~' {
		mark = "~"
	}
	width := len(strconv.Itoa(len(r.items)))
	var b strings.Builder
	for i, item := range r.items {
		if i > 0 {
			b.WriteString(indent)
		}
		fmt.Fprintf(&b, "%*d%s %s", width, i+1, mark, formatStandard(item, indent+strings.Repeat(" ", width+2)))
	}
	return b.String()
}

func formatMap(r reply, indent string) string {
	if len(r.items) == 0 {
		return "(empty hash)\n"
	}
	width := len(strconv.Itoa(len(r.items) / 2))
	var b strings.Builder
	for i := 0; i+1 < len(r.items); i += 2 {
		if i > 0 {
			b.WriteString(indent)
		}
		key := strings.TrimSuffix(formatStandard(r.items[i], ""), "\n")
		fmt.Fprintf(&b, "%*d# %s => %s", width, i/2+1, key,
			formatStandard(r.items[i+1], indent+strings.Repeat(" ", width+2)))
	}
	return b.String()
}
