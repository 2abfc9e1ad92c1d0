package kit

import (
	"context"
	"errors"
)

// Keeping returns the data that a program has in memory and on no disk, and about how many bytes that is. The data is
// not changed any more. An error says why there is none.
type Keeping func(ctx context.Context) (data any, bytes int64, err error)

// ErrNotKept is that a program's data is in memory, and that it cannot hand it over.
var ErrNotKept = errors.New("its program has data in memory alone, which cannot be kept")

// NotKept is the [Keeping] of a program that cannot hand over what it has.
func NotKept(context.Context) (any, int64, error) { return nil, 0, ErrNotKept }

// Keep says how a program hands over its data, so that a container can be put back to how it was: its main program is
// then started with it, see [Env.Kept]. A program whose data is in its files, or that has none, need not call it.
func (e *Env) Keep(f Keeping) {
	if e.keep != nil {
		e.keep(f)
	}
}

// Kept is the data that the program of this container had handed over, if it was put back to that moment; else nil.
func (e *Env) Kept() any { return e.kept }

// OnKeep sets what Keep does, and what Kept returns. It is for those who run programs.
func (e *Env) OnKeep(f func(Keeping), kept any) { e.keep, e.kept = f, kept }
