package aci

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/aci/internal/box"
)

// MaxOutput is how much of an action's output an agent is shown, in bytes.
const MaxOutput = 16 << 10

// shownHead is how much of that is the beginning of a longer output: the head of a table is there.
const shownHead = 4 << 10

type counter = atomic.Int64

// outputs is where outputs that were too long are kept whole.
const outputs = box.Home + "/outputs"

// bound shortens a text that is too long, and says what was left out and how to get it.
func (i *Interface) bound(action, text string) string {
	if len(text) <= MaxOutput {
		return text
	}
	name := fmt.Sprintf("%s/%03d-%s.txt", outputs, i.outputs.Add(1), action)
	where := fmt.Sprintf("All of it is in %s: exec_shell(\"sed -n '1,100p' %s\") shows a part, exec_shell(\"grep "+
		"PATTERN %s\") searches.", name, name, name)
	if err := i.save(name, text); err != nil {
		where = "It could not be kept: " + err.Error() + "."
	}
	return cut(text, MaxOutput, where)
}

// cut leaves out the middle of a text, at the ends of lines if there are any near.
func cut(text string, most int, where string) string {
	head, tail := text[:shownHead], text[len(text)-(most-shownHead):]
	if n := strings.LastIndexByte(head, '\n'); n > 0 {
		head = head[:n+1]
	}
	if n := strings.IndexByte(tail, '\n'); n >= 0 && n < len(tail)/2 {
		tail = tail[n+1:]
	}
	head, tail = strings.ToValidUTF8(head, ""), strings.TrimLeftFunc(tail, func(r rune) bool {
		return r == utf8.RuneError
	})
	gone := text[len(head) : len(text)-len(tail)]
	return fmt.Sprintf("%s\n[%d lines, %d bytes, were left out here. %s]\n\n%s", head, strings.Count(gone, "\n"),
		len(gone), where, tail)
}

// save writes a file for the agent.
func (i *Interface) save(name, text string) error {
	return i.box.WriteFile(name, []byte(text))
}
