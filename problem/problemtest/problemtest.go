// Package problemtest gives tests the built-in problems, without all that a program has beside them.
package problemtest

import (
	"sync"
	"testing"

	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// Library is the built-in applications, faults and problems.
func Library(t testing.TB) *problem.Library {
	t.Helper()
	l, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Find returns a built-in problem.
func Find(t testing.TB, id string) *problem.Problem {
	t.Helper()
	p, err := Library(t).Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var library = sync.OnceValues(func() (*problem.Library, error) {
	return problem.New(everytest.Apps(), fault.Kinds(), problem.Catalog())
})
