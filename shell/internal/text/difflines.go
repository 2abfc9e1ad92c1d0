package text

// edit is a line in the course from one text to another: kept, deleted or added. a and b are where
// it happens in the texts.
type edit struct {
	op   byte // ' ', '-' or '+'
	a, b int
}

// maxDiffWork bounds the work on texts that have little in common. Beyond it the rest of one text
// replaces the rest of the other.
const maxDiffWork = 20_000_000

// diffLines finds a shortest course from x to y, by the algorithm of Myers.
func diffLines(x, y []string) []edit {
	start := 0
	for start < len(x) && start < len(y) && x[start] == y[start] {
		start++
	}
	endX, endY := len(x), len(y)
	for endX > start && endY > start && x[endX-1] == y[endY-1] {
		endX--
		endY--
	}
	var edits []edit
	for i := range start {
		edits = append(edits, edit{' ', i, i})
	}
	edits = append(edits, myers(x[start:endX], y[start:endY], start)...)
	for i := range len(x) - endX {
		edits = append(edits, edit{' ', endX + i, endY + i})
	}
	return edits
}

// myers compares texts that begin at an offset.
func myers(x, y []string, offset int) []edit {
	n, m := len(x), len(y)
	limit := n + m
	v := make([]int, 2*limit+2)
	var trace [][]int
	work := 0
	for d := 0; d <= limit; d++ {
		if work += 2*d + 1; work > maxDiffWork {
			return replaceAll(n, m, offset)
		}
		trace = append(trace, append([]int(nil), v[limit-d:limit+d+2]...))
		for k := -d; k <= d; k += 2 {
			i := 0
			if k == -d || k != d && v[limit+k-1] < v[limit+k+1] {
				i = v[limit+k+1]
			} else {
				i = v[limit+k-1] + 1
			}
			j := i - k
			for i < n && j < m && x[i] == y[j] {
				i++
				j++
			}
			v[limit+k] = i
			if i >= n && j >= m {
				return backtrack(trace, n, m, offset)
			}
		}
	}
	return nil
}

func replaceAll(n, m, offset int) (edits []edit) {
	for i := range n {
		edits = append(edits, edit{'-', offset + i, offset})
	}
	for j := range m {
		edits = append(edits, edit{'+', offset + n, offset + j})
	}
	return edits
}

// backtrack walks the trace from the end to the start.
func backtrack(trace [][]int, i, j, offset int) []edit {
	var reversed []edit
	for d := len(trace) - 1; d > 0; d-- {
		v := trace[d] // v[k+d] is the furthest on diagonal k before step d
		at := func(k int) int {
			if k < -d || k > d+1 {
				return -1
			}
			return v[k+d]
		}
		k := i - j
		previous := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			previous = k + 1
		}
		pi := at(previous)
		pj := pi - previous
		for i > pi && j > pj && i > 0 && j > 0 && !(previous == k+1 && i == pi) && !(previous == k-1 && j == pj) {
			i--
			j--
			reversed = append(reversed, edit{' ', offset + i, offset + j})
		}
		if previous == k+1 {
			j--
			reversed = append(reversed, edit{'+', offset + i, offset + j})
		} else {
			i--
			reversed = append(reversed, edit{'-', offset + i, offset + j})
		}
	}
	for i > 0 && j > 0 {
		i--
		j--
		reversed = append(reversed, edit{' ', offset + i, offset + j})
	}
	edits := make([]edit, len(reversed))
	for n, e := range reversed {
		edits[len(reversed)-1-n] = e
	}
	return edits
}

// group cuts the edits into hunks with some unchanged lines around the changes.
func group(edits []edit, context int) (hunks [][]edit) {
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		start := max(0, i-context)
		end, same := i, 0
		for end < len(edits) && same <= 2*context {
			if edits[end].op == ' ' {
				same++
			} else {
				same = 0
			}
			end++
		}
		if same > context {
			end -= same - context
		}
		hunks = append(hunks, edits[start:end])
		i = end
	}
	return hunks
}
