package token

import "container/heap"

// merge counts the tokens of a piece that is no token. Its bytes are the first parts. As long as two neighbours make a
// token, those that make the one of the lowest rank are joined, from left to right. A piece may be as long as an agent
// likes, so that no step looks at all of it.
func merge(ranks map[string]int32, piece string) int {
	n := int32(len(piece))
	// The part at i ends at end[i], the one before it begins at before[i]. A part that was joined to another ends at 0.
	end, before := make([]int32, n), make([]int32, n)
	joins := make(queue, 0, n)
	add := func(at int32) {
		if at < 0 || end[at] == n {
			return
		}
		to := end[end[at]]
		if rank, ok := ranks[piece[at:to]]; ok {
			heap.Push(&joins, join{rank, at, to})
		}
	}
	for i := range n {
		end[i], before[i] = i+1, i-1
	}
	for i := range n {
		add(i)
	}
	parts := int(n)
	for len(joins) > 0 {
		j := heap.Pop(&joins).(join)
		middle := end[j.at]
		if middle == 0 || middle == n || end[middle] != j.to {
			continue // One of the two was joined to another.
		}
		end[j.at], end[middle] = j.to, 0
		if j.to < n {
			before[j.to] = j.at
		}
		parts--
		add(before[j.at])
		add(j.at)
	}
	return parts
}

// join is two neighbours that make a token: they are what stands between two places of a piece.
type join struct{ rank, at, to int32 }

// queue is a heap of joins, in the order in which they are done.
type queue []join

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].at < q[j].at
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(join)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
