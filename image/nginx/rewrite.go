package nginx

import (
	"regexp"
	"strings"
)

// step is something done to a request before it is answered: the directives return, rewrite and set,
// in their order.
type step struct {
	kind stepKind
	name string         // of the variable to set
	re   *regexp.Regexp // of a rewrite
	text *text
	code int    // of a return, or of a rewrite that redirects the client
	flag string // of a rewrite: "last" or "break"
}

type stepKind int

const (
	stepReturn stepKind = iota
	stepRewrite
	stepSet
)

// takeSteps does the steps of a block. The result is that of a return, if there is one; changed
// tells that the path is another one and its location has to be looked for.
func (x *exchange) takeSteps(steps []step) (result outcome, changed bool) {
	for _, s := range steps {
		switch s.kind {
		case stepSet:
			x.set[s.name] = s.text.eval(x)
		case stepReturn:
			return x.answer(s), false
		case stepRewrite:
			match := s.re.FindStringSubmatch(x.uri)
			if match == nil {
				continue
			}
			x.capture(s.re, match)
			target := s.text.eval(x)
			if s.code != 0 {
				return x.redirect(s.code, x.withArgs(target)), false
			}
			path, args, has := strings.Cut(target, "?")
			if has {
				args = strings.TrimSuffix(args+"&"+x.args, "&")
				if strings.HasSuffix(target, "?") {
					args = ""
				}
				x.args = args
			}
			x.uri = path
			switch s.flag {
			case "break":
				return outcome{}, false
			case "last":
				return outcome{}, true
			}
			changed = true
		}
	}
	return outcome{}, changed
}

// capture makes the groups of a match variables.
func (x *exchange) capture(re *regexp.Regexp, match []string) {
	x.captures = match
	for i, name := range re.SubexpNames() {
		if name != "" {
			x.set[name] = match[i]
		}
	}
}

// withArgs appends the request's arguments to a target, unless it ends in a question mark.
func (x *exchange) withArgs(target string) string {
	if t, ok := strings.CutSuffix(target, "?"); ok {
		return t
	}
	if x.args == "" {
		return target
	}
	if strings.Contains(target, "?") {
		return target + "&" + x.args
	}
	return target + "?" + x.args
}

// answer does a return: a redirection, a text, or one of the server's own pages.
func (x *exchange) answer(s step) outcome {
	value := ""
	if s.text != nil {
		value = s.text.eval(x)
	}
	switch s.code {
	case 301, 302, 303, 307, 308:
		return x.redirect(s.code, value)
	case 444: // The connection is closed without a word.
		x.w.status = 444
		panic(abandoned{})
	}
	if s.text == nil && s.code != 204 && s.code != 200 {
		return outcome{code: s.code}
	}
	x.w.Header().Set("Content-Type", x.contentType(""))
	x.reply(s.code, value)
	return outcome{done: true}
}
