package aci

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/aci/internal/box"
)

type readArgs struct {
	FilePath string `arg:"file_path" doc:"Path of the CSV file."`
}

// deliver has files written to a directory of the host, which the agent cannot have tampered with,
// and puts them into its home. It returns the path the agent knows for what write returns.
func (i *Interface) deliver(write func(dir string) (string, error)) (string, error) {
	dir, err := os.MkdirTemp("", "export")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made, err := write(dir)
	if err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), dir, box.Home))
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		target := path.Join(box.Home, filepath.ToSlash(relative))
		if d.IsDir() {
			return i.box.Root().MkdirAll(target[1:], 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return i.box.WriteFile(target, data)
	})
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(dir, made)
	return path.Join(box.Home, filepath.ToSlash(relative)), err
}

// open opens a file of the agent's, whose path is absolute or relative to where its shell is, or to
// its home.
func (i *Interface) open(name string) (*os.File, error) {
	candidates := []string{name}
	if !path.IsAbs(name) {
		candidates = []string{path.Join(i.box.Dir(), name), path.Join(box.Home, name)}
	}
	var err error
	for _, c := range candidates {
		var f *os.File
		if f, err = i.box.Root().Open(path.Clean("/" + c)[1:]); err == nil {
			return f, nil
		}
	}
	return nil, err
}

// table reads a CSV file as aligned text. what is how errors call it.
func (i *Interface) table(name, what string) Result {
	if path.Clean("/"+name) == "/" {
		return Result{Failed: true, Text: fmt.Sprintf("error: %s file '%s' not found.", what, name)}
	}
	f, err := i.open(name)
	if err != nil {
		return Result{Failed: true, Text: fmt.Sprintf("error: %s file '%s' not found.", what, name)}
	}
	defer f.Close()
	text, err := align(io.LimitReader(f, maxTable))
	if err != nil {
		return Result{Failed: true, Text: fmt.Sprintf("Failed to read %s: %v", strings.ToLower(what), err)}
	}
	return Result{Text: text}
}

// maxTable is how much of a file is read, in bytes.
const maxTable = 32 << 20

// align writes CSV as a table whose columns end below one another.
func align(r io.Reader) (string, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.LazyQuotes = -1, true
	rows, err := c.ReadAll()
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", errors.New("the file is empty")
	}
	var widths []int
	for _, row := range rows {
		for n, field := range row {
			if n == len(widths) {
				widths = append(widths, 0)
			}
			widths[n] = max(widths[n], utf8.RuneCountInString(field))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for n, field := range row {
			if n > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(strings.Repeat(" ", widths[n]-utf8.RuneCountInString(field)) + field)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
