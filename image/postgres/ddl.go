package postgres

import "slices"

// serials has columns that number themselves be the engine's own: INTEGER PRIMARY KEY. Others would get no numbers.
func serials(in []token) ([]token, error) {
	open := slices.IndexFunc(in, func(t token) bool { return t.is("(") })
	if open < 0 {
		return in, nil
	}
	out := slices.Clone(in[:open+1])
	var key []string // the columns of PRIMARY KEY (...)
	var numbered []string
	for _, d := range definitions(in[open+1:]) {
		if len(d) > 3 && d[0].is("primary") && d[2].is("(") {
			for _, t := range d[3:] {
				if name, ok := t.name(); ok {
					key = append(key, name)
				}
			}
		}
		column, numbers, isKey := columnOf(d)
		if numbers && len(d) > 0 {
			if !isKey {
				name, _ := d[0].name()
				numbered = append(numbered, name)
			}
			d = column
		}
		out = append(out, d...)
	}
	for _, name := range numbered {
		if len(key) != 1 || key[0] != name {
			return nil, unsupported("a column that numbers itself, and is not the primary key (%s),", name)
		}
	}
	return out, nil
}

// definitions splits what is in the parentheses of CREATE TABLE. Each but the last ends with its comma; the last has
// the parenthesis and all after it.
func definitions(in []token) (list [][]token) {
	depth, from := 0, 0
	for i, t := range in {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			if depth--; depth < 0 {
				return append(list, in[from:])
			}
		case t.is(",") && depth == 0:
			list = append(list, in[from:i+1])
			from = i + 1
		}
	}
	return append(list, in[from:])
}

// columnOf tells whether a column numbers itself, and is the primary key, and gives it as the engine wants it.
func columnOf(d []token) (column []token, numbers, key bool) {
	if len(d) < 2 {
		return d, false, false
	}
	_, n := typeAt(d, 1)
	if n == 0 {
		return d, false, false
	}
	numbers = d[1].is("serial", "bigserial", "smallserial")
	column = []token{d[0], {word, "integer"}}
	for i := 1 + n; i < len(d); i++ {
		if d[i].is("generated") {
			for j := i; j < len(d); j++ {
				if d[j].is("identity") {
					numbers, i = true, j
					break
				}
			}
			continue
		}
		key = key || d[i].is("primary")
		column = append(column, d[i])
	}
	return column, numbers, key
}

// indexed has the schema before the name of an index, where the engine wants it, and not before that of its table.
func indexed(in []token) ([]token, error) {
	on := slices.IndexFunc(in, func(t token) bool { return t.is("on") })
	if on < 0 || on+1 >= len(in) {
		return nil, failf(codeSyntax, "syntax error at end of input")
	}
	out, rest := slices.Clone(in[:on+1]), in[on+1:]
	if len(rest) > 2 && rest[1].is(".") {
		if _, ok := out[on-1].name(); !ok || out[on-1].is("index", "exists") {
			return nil, unsupported("an index without a name")
		}
		schema := rest[0]
		if schema.is("public") {
			schema = token{word, "main"}
		}
		out = slices.Insert(out, on-1, schema, token{sign, "."})
		rest = rest[2:]
	}
	table := rest[0]
	if name, ok := table.name(); ok {
		table = token{quoted, name}
	}
	out = append(out, table)
	rest = rest[1:]
	if len(rest) > 1 && rest[0].is("using") {
		rest = rest[2:]
	}
	return append(out, rest...), nil
}

// truncated is TRUNCATE as a DELETE.
func truncated(in []token) ([]token, error) {
	rest := in[1:]
	if len(rest) > 0 && rest[0].is("table") {
		rest = rest[1:]
	}
	out := []token{{word, "delete"}, {word, "from"}}
	for i, t := range rest {
		switch {
		case t.is("restart", "continue", "cascade", "restrict") && i > 0:
			return out, nil
		case t.is(","):
			return nil, unsupported("TRUNCATE of several tables")
		}
		out = append(out, t)
	}
	return out, nil
}
