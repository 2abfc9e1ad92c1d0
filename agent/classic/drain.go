package classic

import (
	"regexp"
	"strconv"
	"strings"
)

// Drain (He et al., ICWS 2017) finds the templates of log lines: a tree of fixed depth leads a line by its length and
// its first words to a few templates, and it is of the most similar one. The numbers are those that Drain3, a common
// program of it, has if it is not told others.
const (
	drainWords      = 2   // of a line that lead through the tree: a depth of 4 with the root and the length
	drainSimilarity = 0.4 // the share of equal words that makes a line one of a template
	// drainTemplates are the most of a leaf: Drain bounds its tree so that a log of random words does not fill memory.
	drainTemplates = 100
	wildcard       = "<*>"
)

// variable is what differs in lines of one template: numbers, words with numbers in them, quoted text.
var variable = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s=:,()\[\]{}"']*\d[^\s=:,()\[\]{}"']*`)

// drain has the templates that were seen. Those of different services are different. The zero value is ready to use.
type drain struct {
	leaves map[string][]*template
	n      int
}

type template struct {
	key   int
	words []string
}

// key is the template of a line, which may be a new one.
func (d *drain) key(service, text string) int {
	words := strings.Fields(variable.ReplaceAllString(text, wildcard))
	leaf := service + " " + strconv.Itoa(len(words)) + " " + strings.Join(words[:min(drainWords, len(words))], " ")
	var best *template
	bestShare := -1.0
	for _, t := range d.leaves[leaf] {
		if share := t.share(words); share > bestShare {
			best, bestShare = t, share
		}
	}
	if best == nil || bestShare < drainSimilarity && len(d.leaves[leaf]) < drainTemplates {
		if d.leaves == nil {
			d.leaves = map[string][]*template{}
		}
		best = &template{d.n, words}
		d.n++
		d.leaves[leaf] = append(d.leaves[leaf], best)
		return best.key
	}
	for i, w := range words {
		if best.words[i] != w {
			best.words[i] = wildcard
		}
	}
	return best.key
}

// share is how much of a line is as in the template, which is of the same length.
func (t *template) share(words []string) float64 {
	same := 0
	for i, w := range words {
		if t.words[i] == w {
			same++
		}
	}
	return float64(same) / float64(max(1, len(words)))
}
