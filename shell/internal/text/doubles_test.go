package text

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"

	"github.com/benhoyt/goawk/parser"

	"github.com/aiopslab/aiopslab/kit"
)

// noFiles is a file system without files.
type noFiles struct{ kit.FS }

func (noFiles) OpenFile(name string, _ int, _ fs.FileMode) (kit.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
}

func (noFiles) Stat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOENT}
}

// limitedBuffer takes so much and no more, as scripts may loop.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len() > 1<<20 {
		return 0, errors.New("enough")
	}
	return b.Buffer.Write(p)
}

func parseAwkOnly(a *awkRun, source string) (*parser.Program, error) {
	return parser.ParseProgram([]byte(source), &parser.ParserConfig{Funcs: a.functions()})
}
