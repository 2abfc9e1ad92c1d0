package postgres

import "strings"

// parser reads the statements that the session does itself.
type parser struct {
	in []token
	i  int
}

func (p *parser) peek() token {
	if p.i >= len(p.in) {
		return token{kind: sign}
	}
	return p.in[p.i]
}

// accept skips keywords that are there, in their order.
func (p *parser) accept(words ...string) bool {
	for k, w := range words {
		if p.i+k >= len(p.in) || !p.in[p.i+k].is(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) name() (string, error) {
	s, ok := p.peek().name()
	if !ok {
		return "", failf(codeSyntax, "syntax error at or near %q", p.peek().text)
	}
	p.i++
	return s, nil
}

func (p *parser) end() error {
	if p.i < len(p.in) {
		return failf(codeSyntax, "syntax error at or near %q", p.peek().text)
	}
	return nil
}

// roleOptions reads what follows the name in CREATE ROLE and ALTER ROLE.
func (p *parser) roleOptions(login bool) (super, canLogin bool, password *string, err error) {
	canLogin = login
	p.accept("with")
	for p.i < len(p.in) {
		switch {
		case p.accept("encrypted", "password"), p.accept("password"):
			if p.accept("null") {
				continue
			}
			if p.peek().kind != text {
				return false, false, nil, failf(codeSyntax, "syntax error at or near %q", p.peek().text)
			}
			s := p.peek().text
			password = &s
			p.i++
		case p.accept("superuser"):
			super = true
		case p.accept("login"):
			canLogin = true
		case p.accept("nologin"):
			canLogin = false
		case p.accept("nosuperuser"), p.accept("createdb"), p.accept("nocreatedb"), p.accept("createrole"),
			p.accept("nocreaterole"), p.accept("inherit"), p.accept("noinherit"):
		default:
			return false, false, nil, unsupported("%s of a role", strings.ToUpper(p.peek().text))
		}
	}
	return super, canLogin, password, nil
}

// rightsOf reads GRANT or REVOKE after its first word.
func (p *parser) rightsOf(give bool, database string) (rights []right, roles []string, err error) {
	var what []string
	for {
		w, err := p.name()
		if err != nil {
			return nil, nil, err
		}
		if w == "all" {
			p.accept("privileges")
		}
		what = append(what, strings.ToUpper(w))
		if !p.accept(",") {
			break
		}
	}
	if !p.accept("on") {
		return nil, nil, unsupported("membership in a role")
	}
	objects, err := p.objects(database)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range what {
		for _, o := range objects {
			rights = append(rights, right{w, o.schema, o.table})
			if w == "ALL" && o.table == "" {
				rights = append(rights, right{"USAGE", o.schema, ""}, right{"CREATE", o.schema, ""})
			}
		}
	}
	if give && !p.accept("to") || !give && !p.accept("from") {
		return nil, nil, failf(codeSyntax, "syntax error at or near %q", p.peek().text)
	}
	for {
		name, err := p.name()
		if err != nil {
			return nil, nil, err
		}
		roles = append(roles, name)
		if !p.accept(",") {
			break
		}
	}
	p.accept("with", "grant", "option")
	p.accept("cascade")
	return rights, roles, p.end()
}

// objects reads what rights are on. Rights on sequences and on the database itself are nothing here: a table numbers
// its rows itself, and who may log in may connect.
func (p *parser) objects(database string) (list []right, err error) {
	all := p.accept("all")
	switch {
	case all && p.accept("tables", "in", "schema"), all && p.accept("sequences", "in", "schema"):
		sequences := p.in[p.i-3].is("sequences")
		for {
			schema, err := p.name()
			if err != nil {
				return nil, err
			}
			if !sequences {
				list = append(list, right{schema: schema, table: "*"})
			}
			if !p.accept(",") {
				return list, nil
			}
		}
	case p.accept("schema"):
		for {
			schema, err := p.name()
			if err != nil {
				return nil, err
			}
			list = append(list, right{schema: schema})
			if !p.accept(",") {
				return list, nil
			}
		}
	case p.accept("database"):
		name, err := p.name()
		if err == nil && name != database {
			err = failf(codeNoDatabase, "database %q does not exist", name)
		}
		return nil, err
	}
	p.accept("table")
	for {
		schema, table := "public", ""
		if table, err = p.name(); err != nil {
			return nil, err
		}
		if p.accept(".") {
			schema = table
			if table, err = p.name(); err != nil {
				return nil, err
			}
		}
		list = append(list, right{schema: schema, table: table})
		if !p.accept(",") {
			return list, nil
		}
	}
}
