package text

import (
	"io"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// sedInput is the lines of some files, with a look at what comes next, since $ is the last line.
type sedInput struct {
	c      *tool.Call
	files  []string // not opened yet
	sep    byte
	silent bool // files that cannot be opened are not reported

	file    io.Closer
	current string
	lines   *stream.Lines
	line    int // the number of the last one that was handed out

	ahead  string
	ended  bool
	loaded bool // ahead is a line
	over   bool
}

func newSedInput(c *tool.Call, files []string, sep byte) *sedInput {
	return &sedInput{c: c, files: files, sep: sep}
}

func (in *sedInput) close() {
	if in.file != nil {
		in.file.Close()
		in.file = nil
	}
}

// load looks at the next line.
func (in *sedInput) load() {
	for !in.loaded && !in.over {
		if in.lines == nil {
			if len(in.files) == 0 {
				in.over = true
				return
			}
			in.current, in.files = in.files[0], in.files[1:]
			f, err := in.c.Open(in.current)
			if err != nil {
				if !in.silent {
					in.c.Warn("%s: %s", in.current, tool.Reason(err))
				}
				continue
			}
			in.file, in.lines = f, stream.NewRecords(f, in.sep)
		}
		line, ended, err := in.lines.Next()
		if err != nil {
			if err != io.EOF && !in.silent {
				in.c.Warn("read error on %s: %s", in.current, tool.Reason(err))
			}
			in.close()
			in.lines = nil
			continue
		}
		in.ahead, in.ended, in.loaded = string(line), ended, true
	}
}

func (in *sedInput) next() (line string, ended, ok bool) {
	in.load()
	if in.over {
		return "", false, false
	}
	in.loaded = false
	in.line++
	return in.ahead, in.ended, true
}

// atEnd reports whether the line that was handed out last is the last one.
func (in *sedInput) atEnd() bool {
	in.load()
	return in.over
}

func (in *sedInput) name() string { return in.current }

// rest is everything that was not handed out.
func (in *sedInput) rest() io.Reader {
	var readers []io.Reader
	if in.loaded {
		text := in.ahead
		if in.ended {
			text += string(in.sep)
		}
		readers = append(readers, strings.NewReader(text))
	}
	if in.lines != nil {
		readers = append(readers, in.lines.Rest())
	}
	return io.MultiReader(readers...)
}
