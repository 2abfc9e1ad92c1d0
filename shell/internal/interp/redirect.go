package interp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// redirect makes the descriptors of a command refer to other files. undo must be called, with
// whether they are to stay that way. If something failed, it has been reported.
func (s *Shell) redirect(ctx context.Context, redirs []*syntax.Redirect) (undo func(keep bool), ok bool) {
	if len(redirs) == 0 {
		return func(bool) {}, true
	}
	saved := map[int]*file{}
	save := func(n int) {
		if _, ok := saved[n]; ok {
			return
		}
		if saved[n] = s.fds[n]; saved[n] != nil {
			saved[n].retain()
		}
	}
	undo = func(keep bool) {
		for n, old := range saved {
			switch {
			case !keep:
				s.setFD(n, old)
			case old != nil:
				old.release()
			}
		}
	}
	for _, r := range redirs {
		if err := s.redirectOne(ctx, r, save); err != nil {
			if err != errReported {
				s.complain("%v", err)
			}
			s.status = 1
			return undo, false
		}
	}
	return undo, true
}

// errReported is an error that has been reported already.
var errReported = errors.New("reported")

func (s *Shell) redirectOne(ctx context.Context, r *syntax.Redirect, save func(int)) error {
	n, err := s.redirected(r)
	if err != nil {
		return err
	}
	put := func(n int, f *file) {
		save(n)
		s.setFD(n, f)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		body, err := s.hereDocument(ctx, r)
		if err != nil {
			s.badExpansion(err)
			return errReported
		}
		put(n, newFile(onlyReader{strings.NewReader(body)}, nil, nil))
		return nil
	}
	target, err := s.literal(ctx, r.Word)
	if err != nil {
		s.badExpansion(err)
		return errReported
	}
	duplicate := r.Op == syntax.DplIn || r.Op == syntax.DplOut
	all := r.Op == syntax.RdrAll || r.Op == syntax.AppAll
	if duplicate {
		if done, err := s.duplicate(n, target, save); done || err != nil {
			return err
		}
		// >&file is an old way to write &>file.
		if all = r.Op == syntax.DplOut && r.N == nil; !all {
			return fmt.Errorf("%s: bad file descriptor", target)
		}
	}
	f, err := s.open(ctx, target, openFlags(r.Op), s.opts.noClobber && r.Op == syntax.RdrOut)
	if err != nil {
		return err
	}
	if all {
		put(1, f)
		put(2, f.retain())
		return nil
	}
	put(n, f)
	return nil
}

// redirected is the descriptor that a redirection is about.
func (s *Shell) redirected(r *syntax.Redirect) (int, error) {
	if r.N == nil {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return 0, nil
		}
		return 1, nil
	}
	if name, ok := strings.CutPrefix(r.N.Value, "{"); ok { // {fd}>file picks one.
		n := 10
		for s.fds[n] != nil {
			n++
		}
		s.set(strings.TrimSuffix(name, "}"), strconv.Itoa(n))
		return n, nil
	}
	n, err := strconv.Atoi(r.N.Value)
	if err != nil || n > 1023 {
		return 0, fmt.Errorf("%s: bad file descriptor", r.N.Value)
	}
	return n, nil
}

// duplicate handles n>&m and n>&-. It reports false if target is no descriptor.
func (s *Shell) duplicate(n int, target string, save func(int)) (done bool, err error) {
	if target == "-" {
		save(n)
		s.setFD(n, nil)
		return true, nil
	}
	digits, move := strings.CutSuffix(target, "-")
	m, err := strconv.Atoi(digits)
	if err != nil {
		return false, nil
	}
	f := s.fds[m]
	if f == nil {
		return true, fmt.Errorf("%s: %s", target, s.pick("bad file descriptor", "Bad file descriptor"))
	}
	save(n)
	s.setFD(n, f.retain())
	if move {
		save(m)
		s.setFD(m, nil)
	}
	return true, nil
}

func openFlags(op syntax.RedirOperator) int {
	switch op {
	case syntax.RdrIn:
		return os.O_RDONLY
	case syntax.RdrInOut:
		return os.O_RDWR | os.O_CREATE
	case syntax.AppOut, syntax.AppAll:
		return os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	return os.O_WRONLY | os.O_CREATE | os.O_TRUNC
}

// open opens what a redirection names: a file, or one of the names the shell knows itself.
func (s *Shell) open(ctx context.Context, name string, flag int, noClobber bool) (*file, error) {
	if f, ok, err := s.openSpecial(ctx, name); ok || err != nil {
		return f, err
	}
	here := s.here()
	if fi, err := here.FS.Stat(here.Path(name)); noClobber && err == nil && fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s", s.pick("can't create "+name+": File exists",
			name+": cannot overwrite existing file"))
	}
	f, err := here.FS.OpenFile(here.Path(name), flag, 0o666&^fs.FileMode(s.umask))
	if err != nil {
		return nil, s.openError(name, flag, err)
	}
	closeFile := func() { f.Close() }
	switch {
	case flag&os.O_RDWR != 0:
		return newFile(f, f, closeFile), nil
	case flag&os.O_WRONLY != 0:
		return newFile(nil, f, closeFile), nil
	}
	return newFile(f, nil, closeFile), nil
}

// openSpecial opens the names that are no files of the container.
func (s *Shell) openSpecial(ctx context.Context, name string) (f *file, ok bool, err error) {
	switch name {
	case "/dev/null":
		return newFile(strings.NewReader(""), io.Discard, nil), true, nil
	case "/dev/stdin":
		name = "/dev/fd/0"
	case "/dev/stdout":
		name = "/dev/fd/1"
	case "/dev/stderr":
		name = "/dev/fd/2"
	}
	if digits, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		n, err := strconv.Atoi(digits)
		if err != nil || s.fds[n] == nil {
			return nil, false, fmt.Errorf("can't open %s: no such file", name)
		}
		return s.fds[n].retain(), true, nil
	}
	for _, network := range []string{"tcp", "udp"} {
		rest, ok := strings.CutPrefix(name, "/dev/"+network+"/")
		host, port, slash := strings.Cut(rest, "/")
		if !ok || !slash || !s.bash {
			continue
		}
		conn, err := s.env.Net.DialContext(ctx, network, net.JoinHostPort(host, port))
		if err != nil {
			reason := tool.Reason(err)
			if dns, ok := errors.AsType[*net.DNSError](err); ok {
				reason = dns.Name + ": Name or service not known"
			}
			return nil, true, fmt.Errorf("%s: %s", name, reason)
		}
		return newFile(conn, conn, func() { conn.Close() }), true, nil
	}
	return nil, false, nil
}

// openError is a failure to open a file in the words of the shell.
func (s *Shell) openError(name string, flag int, err error) error {
	reason := tool.Reason(err)
	if s.bash {
		return fmt.Errorf("%s: %s", name, reason)
	}
	create := flag&os.O_CREATE != 0
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		reason = "no such file"
		if create {
			reason = "nonexistent directory"
		}
	}
	if create {
		return fmt.Errorf("can't create %s: %s", name, reason)
	}
	return fmt.Errorf("can't open %s: %s", name, reason)
}

func (s *Shell) cannotOpen(name string, err error) {
	s.complain("%v", s.openError(name, os.O_RDONLY, err))
}
