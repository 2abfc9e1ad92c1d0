package cell

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Failure is an error on the line.
type Failure struct {
	Text     string
	Op, Path string // of a *fs.PathError
	Errno    syscall.Errno
	EOF      bool
	Timeout  bool
	Unknown  bool // the name of a host
}

// failureOf returns nil for nil.
func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error(), EOF: err == io.EOF, Timeout: errors.Is(err, os.ErrDeadlineExceeded)}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		f.Op, f.Path = p.Op, p.Path
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		f.Unknown, f.Text = true, d.Err
	}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	return f
}

// err is the error that it stands for.
func (f *Failure) err() error {
	if f == nil {
		return nil
	}
	var err error
	switch {
	case f.EOF:
		return io.EOF
	case f.Unknown:
		return &net.DNSError{Err: f.Text, IsNotFound: true}
	case f.Timeout:
		return os.ErrDeadlineExceeded
	case f.Errno != 0:
		err = f.Errno
	default:
		err = errors.New(f.Text)
	}
	if f.Op != "" {
		return &fs.PathError{Op: f.Op, Path: f.Path, Err: err}
	}
	return err
}
