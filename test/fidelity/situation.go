package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed situations/*.yaml
var files embed.FS

// situation is something that goes wrong.
type situation struct {
	name     string
	what     string // in words
	until    []string
	manifest string // in which NAMESPACE stands for where it is played
}

// readSituations reads all of them. A file begins with two comments: what it is about, and until when to wait.
func readSituations() (list []situation, err error) {
	names, err := fs.Glob(files, "situations/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		what, rest, _ := strings.Cut(string(b), "\n")
		until, rest, _ := strings.Cut(rest, "\n")
		s := situation{
			name: strings.TrimSuffix(path.Base(name), ".yaml"), what: strings.TrimPrefix(what, "# "), manifest: rest,
		}
		text, ok := strings.CutPrefix(until, "# until: ")
		if s.until = strings.Fields(text); !ok || len(s.until) == 0 {
			return nil, fmt.Errorf("%s: the second line does not say until when to wait", name)
		}
		list = append(list, s)
	}
	return list, nil
}
