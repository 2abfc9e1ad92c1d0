package chance

import (
	"slices"
	"strconv"
	"sync"
	"testing"
)

func numbers(draw func() float64) []float64 {
	list := make([]float64, 50)
	for i := range list {
		list[i] = draw()
	}
	return list
}

func TestTheSameSeedGivesANameTheSameNumbers(t *testing.T) {
	draw := func(seed uint64, name string) []float64 {
		var s Source
		s.Seed(seed)
		return numbers(func() float64 { return s.Draw(name) })
	}
	one := draw(7, "geo")
	if !slices.Equal(one, draw(7, "geo")) {
		t.Error("two sources with one seed differ")
	}
	if slices.Equal(one, draw(8, "geo")) {
		t.Error("another seed gives the same numbers")
	}
	if slices.Equal(one, draw(7, "db")) {
		t.Error("another name gets the same numbers")
	}
	if i := slices.IndexFunc(one, func(f float64) bool { return f < 0 || f >= 1 }); i >= 0 {
		t.Errorf("drew %v", one[i])
	}
}

// TestOthersDoNotDisturb: what one name draws does not depend on who else draws, and when.
func TestOthersDoNotDisturb(t *testing.T) {
	var quiet, busy Source
	quiet.Seed(1)
	busy.Seed(1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					busy.Draw(strconv.Itoa(i))
					busy.Fork("other")
				}
			}
		})
	}
	alone, among := numbers(func() float64 { return quiet.Draw("geo") }), numbers(func() float64 { return busy.Draw("geo") })
	close(stop)
	wg.Wait()
	if !slices.Equal(alone, among) {
		t.Error("others changed what it drew")
	}
}

func TestForksDiffer(t *testing.T) {
	var s Source
	s.Seed(3)
	first, epoch := s.Fork("conn")
	second, _ := s.Fork("conn")
	a, b := numbers(first.Float64), numbers(second.Float64)
	if slices.Equal(a, b) {
		t.Error("two of a name draw the same")
	}
	s.Seed(3)
	if s.Epoch() == epoch {
		t.Error("a new seed is no new epoch")
	}
	again, _ := s.Fork("conn")
	if !slices.Equal(a, numbers(again.Float64)) {
		t.Error("the first after a seed differs from the first before")
	}
}
