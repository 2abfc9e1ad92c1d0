// Package thought separates what a model thinks from what it says. Thoughts are kept and never obeyed: a call that
// a model weighs in its thoughts is not one it makes.
//
//	answer, thoughts := thought.Split("<think>restart it?</think>I look first.", false)
//
// A thought stands between tags such as <think> and </think>, or in a channel of its own. The opening
// tag may be missing, because it was part of the prompt: then all that comes before the closing one is
// thought. The closing tag may be missing, because the reply was cut off: then the rest is thought. A
// tag in a block of code, in backticks or in quotes on one line is a word of the answer like any other.
package thought

import "strings"

// rounds limits how often an answer is looked at again, for tags that come to light when a thought is
// taken out. No honest reply needs more than one.
const rounds = 8

// Split returns the answer in a reply, and the thoughts around it. Cut says that the reply ended at a
// limit, not by the model's own will. A reply without thoughts is returned as it is.
func Split(text string, cut bool) (answer, thoughts string) {
	answer = text
	var all []string
	for range rounds {
		rest, found := channels(answer)
		rest, more := tags(rest, cut)
		if found = append(found, more...); len(found) == 0 && rest == answer {
			break
		}
		answer = strings.TrimSpace(rest)
		for _, f := range found {
			if f = strings.TrimSpace(f); f != "" {
				all = append(all, f)
			}
		}
	}
	return answer, strings.Join(all, "\n\n")
}

// tags takes out what stands between tags.
func tags(text string, cut bool) (answer string, thoughts []string) {
	s := &scanner{text: text, list: lex(text), nested: true, cut: cut}
	var said []string
	opened := false
	from := 0 // of what is said and not yet kept
	for {
		t := s.nextTag()
		switch {
		case t == nil:
			return strings.Join(append(said, text[from:]), "\n"), thoughts
		case t.kind == empty:
			said = append(said, text[from:t.at])
		case t.kind == opening:
			opened = true
			said = append(said, text[from:t.at])
			end := s.closing()
			if end == nil { // It has no end: all the rest is thought.
				return strings.Join(said, "\n"), append(thoughts, text[t.end:])
			}
			thoughts = append(thoughts, text[t.end:end.at])
			t = end
		case opened && strings.TrimSpace(text[t.end:]) == "": // One too many, at the very end.
			said = append(said, text[from:t.at])
		default: // The prompt opened it: all until here was thought.
			thoughts = append(thoughts, strings.Join(append(said, text[from:t.at]), "\n"))
			said = nil
		}
		from = t.end
	}
}
