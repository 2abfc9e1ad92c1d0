package human

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// pager shows a text on a terminal, a page at a time.
type pager struct {
	out           io.Writer
	width, height int
	// key waits for a key. An error ends the text.
	key func() (byte, error)
}

// more is what stands below a page that is not the last.
const more = "-- %d more lines: Enter or space goes on, a shows all, q leaves out the rest --"

func newPager(f *os.File, out io.Writer) *pager {
	p := &pager{out: out, key: func() (byte, error) { return readKey(f) }}
	if w, h, err := term.GetSize(int(f.Fd())); err == nil {
		p.width, p.height = w, h
	}
	return p
}

// print shows the text. On a terminal of unknown size it is shown at once.
func (p *pager) print(text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 0 {
		n := p.fit(lines)
		fmt.Fprintln(p.out, strings.Join(lines[:n], "\n"))
		if lines = lines[n:]; len(lines) == 0 {
			return
		}
		prompt := fmt.Sprintf(more, len(lines))
		fmt.Fprint(p.out, prompt)
		k, err := p.key()
		fmt.Fprint(p.out, "\r"+strings.Repeat(" ", len(prompt))+"\r")
		switch {
		case err != nil, k == 'q', k == 'Q', k == 3, k == 27: // Ctrl-C and Escape
			return
		case k == 'a':
			p.height = 0
		}
	}
}

// fit is how many of the lines fit on the screen, one at least.
func (p *pager) fit(lines []string) int {
	if p.height < 3 {
		return len(lines)
	}
	rows := 0
	for i, l := range lines {
		rows += 1 + max(utf8.RuneCountInString(l)-1, 0)/max(p.width, 1)
		if rows > p.height-1 {
			return max(i, 1)
		}
	}
	return len(lines)
}

// readKey reads one key without waiting for the end of a line.
func readKey(f *os.File) (byte, error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return 0, err
	}
	defer term.Restore(int(f.Fd()), state) //nolint:errcheck // There is nothing to be done.
	var b [1]byte
	_, err = f.Read(b[:])
	return b[0], err
}
