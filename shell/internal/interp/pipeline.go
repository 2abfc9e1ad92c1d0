package interp

import (
	"context"
	"strconv"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// stage is a part of a pipeline. both says that its errors go down the pipe too.
type stage struct {
	stmt *syntax.Stmt
	both bool
}

// stages flattens a | b | c, which is parsed as (a | b) | c.
func stages(c *syntax.BinaryCmd) []stage {
	var list []stage
	if b, ok := c.X.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) &&
		len(c.X.Redirs) == 0 && !c.X.Negated {
		list = stages(b)
	} else {
		list = []stage{{stmt: c.X}}
	}
	list[len(list)-1].both = c.Op == syntax.PipeAll
	return append(list, stage{stmt: c.Y})
}

// pipeline runs all stages at once, each in a copy of the shell.
func (s *Shell) pipeline(ctx context.Context, c *syntax.BinaryCmd) flow {
	list := stages(c)
	subs := make([]*Shell, len(list))
	for i := range list {
		subs[i] = s.fork()
	}
	for i := range list[:len(list)-1] {
		r, w := newPipe(ctx)
		subs[i].setFD(1, w)
		if list[i].both {
			subs[i].setFD(2, w.retain())
		}
		subs[i+1].setFD(0, r)
	}
	var wg sync.WaitGroup
	for i, sub := range subs {
		wg.Go(func() {
			sub.alone(func() {
				sub.stmt(ctx, list[i].stmt)
				sub.finish(ctx)
			})
		})
	}
	wg.Wait()
	s.pipeStatus = nil
	s.status = subs[len(subs)-1].status
	for _, sub := range subs {
		s.pipeStatus = append(s.pipeStatus, strconv.Itoa(sub.status))
		if s.opts.pipeFail && sub.status != 0 {
			s.status = sub.status
		}
	}
	// Ctrl-C is for all of it at once: that some had ended before it reached them, or began after, does not count.
	for _, sub := range subs {
		if fl := s.interrupted(sub.status); fl != flowNext {
			s.status = sub.status
			return fl
		}
	}
	return s.died(ctx)
}
