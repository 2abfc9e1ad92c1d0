package thought

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Harmony is how gpt-oss writes: messages in channels, of which "analysis" is thought, "final" the answer
// and "commentary" a word in between or the call of a function. Endpoints should part them, and some do
// not, or only take the markers out.

// channel and recipient are what the header of a message says.
var (
	channel   = regexp.MustCompile(`(?i)\b(analysis|commentary|final)\b`)
	recipient = regexp.MustCompile(`\bto=(?:functions\.)?([\w.-]+)`)
)

// bare is a reply from which the markers were taken out.
var bare = regexp.MustCompile(`(?s)^\s*analysis(.*)assistant(final|commentary)(.*)$`)

// bareCall is a call from which they were.
var bareCall = regexp.MustCompile(`(?s)^\s*to=(?:functions\.)?([A-Za-z_]\w*)\s*(?:json|code)?\s*(\{.*)$`)

// channels takes out the channel that is thought, and the markers. A call becomes a tag with JSON in it.
func channels(text string) (answer string, thoughts []string) {
	if !strings.Contains(text, "<|") {
		return withoutMarkers(text)
	}
	s := &scanner{text: text, list: lex(text)}
	part, m := s.message(0, false)
	if m == nil {
		return text, nil
	}
	var said []string
	if m.name == "end" { // The prompt opened it.
		thoughts = append(thoughts, part)
	} else {
		said = append(said, part)
	}
	for head := ""; m != nil; {
		name := m.name
		thinking := name == "message" && strings.EqualFold(channel.FindString(head), "analysis")
		part, m = s.message(m.end, thinking)
		switch {
		case thinking:
			thoughts, head = append(thoughts, part), ""
		case name == "message":
			if to := recipient.FindStringSubmatch(head); to != nil {
				part = call(to[1], part)
			}
			said, head = append(said, part), ""
		case name == "start":
			head = part
		case name == "channel", name == "constrain":
			head += " " + part
		default:
			said = append(said, part)
		}
	}
	return strings.TrimSpace(strings.Join(said, "\n")), thoughts
}

// message returns the text from a place to the next marker, and that. In a thought, quotes and code do
// not matter.
func (s *scanner) message(from int, thinking bool) (text string, next *token) {
	if thinking {
		for s.at < len(s.list) && s.list[s.at].kind != marker {
			s.at++
		}
	}
	next = s.next(func(t token) bool { return t.kind == marker })
	if next == nil {
		return s.text[from:], nil
	}
	return s.text[from:next.at], next
}

// call writes a call as models do that are not asked in this form.
func call(name, arguments string) string {
	arguments = strings.TrimSpace(arguments)
	if !json.Valid([]byte(arguments)) {
		b, _ := json.Marshal(arguments)
		arguments = string(b)
	}
	return `<tool_call>{"name": "` + name + `", "arguments": ` + arguments + `}</tool_call>`
}

// withoutMarkers reads a reply from which the markers were taken out.
func withoutMarkers(text string) (answer string, thoughts []string) {
	m := bare.FindStringSubmatch(text)
	if m == nil {
		return text, nil
	}
	if c := bareCall.FindStringSubmatch(m[3]); c != nil && m[2] == "commentary" {
		return call(c[1], c[2]), []string{m[1]}
	}
	return strings.TrimSpace(m[3]), []string{m[1]}
}
