package memcached

import "math"

// The original's defaults.
const (
	itemHeader = 48 + 8  // bytes of an item besides its key and value: the structure, and its cas
	pageSize   = 1 << 20 // what a class gets at a time
	chunkMax   = pageSize / 2
	chunkMin   = 96
	growth     = 1.25
)

// slabs is the memory of the items: pages cut into chunks of the sizes of the classes.
type slabs struct {
	limit   int64 // bytes of all pages
	pages   int64
	touched int64 // bytes that were ever used
	classes []class
}

// class is the chunks of a size, and the items in them.
type class struct {
	size    int
	pages   int64
	fresh   int64 // chunks that were never used
	free    int64 // chunks that are no longer used
	used    int64
	list    list
	counted classStats
}

// newSlabs returns the classes of the original: each is larger than the one before by the same
// factor, and all are aligned.
func newSlabs(limit int64) *slabs {
	s := &slabs{limit: limit, classes: []class{{}}} // There is no class 0.
	for size := chunkMin; float64(size) < chunkMax/growth; {
		s.classes = append(s.classes, class{size: size})
		size = (int(math.Floor(float64(size)*growth)) + 7) &^ 7
	}
	s.classes = append(s.classes, class{size: chunkMax})
	return s
}

// fit returns the class for an item of some bytes and how many chunks it takes: one, unless it is
// larger than any chunk.
func (s *slabs) fit(bytes int) (id int, chunks int64) {
	for i := 1; i < len(s.classes); i++ {
		if bytes <= s.classes[i].size {
			return i, 1
		}
	}
	return len(s.classes) - 1, int64((bytes + chunkMax - 1) / chunkMax)
}

// take gives out chunks of a class. It fails if all are in use and there may be no more pages. A
// class that has none may always have one.
func (s *slabs) take(id int, chunks int64) bool {
	c := &s.classes[id]
	for c.free+c.fresh < chunks {
		if c.pages > 0 && (s.pages+1)*pageSize > s.limit {
			return false
		}
		c.pages++
		s.pages++
		c.fresh += int64(pageSize / c.size)
	}
	reused := min(chunks, c.free)
	c.free -= reused
	c.fresh -= chunks - reused
	s.touched += (chunks - reused) * int64(c.size)
	c.used += chunks
	return true
}

// give takes chunks back.
func (s *slabs) give(id int, chunks int64) {
	c := &s.classes[id]
	c.used -= chunks
	c.free += chunks
}

// list is the items of a class, the most recently used first.
type list struct {
	head, tail *item
	n          int64
}

func (l *list) push(it *item) {
	it.prev, it.next = nil, l.head
	if l.head != nil {
		l.head.prev = it
	} else {
		l.tail = it
	}
	l.head = it
	l.n++
}

func (l *list) remove(it *item) {
	if it.prev != nil {
		it.prev.next = it.next
	} else {
		l.head = it.next
	}
	if it.next != nil {
		it.next.prev = it.prev
	} else {
		l.tail = it.prev
	}
	it.prev, it.next = nil, nil
	l.n--
}
