package rabbitmq

import "strings"

// Kinds of exchanges.
const (
	kindDirect = "direct"
	kindFanout = "fanout"
	kindTopic  = "topic"
)

// exchange is where messages are published to.
type exchange struct {
	name, kind          string
	durable, autoDelete bool
	internal            bool
	bindings            []binding
}

// binding is where an exchange sends messages to.
type binding struct {
	key   string
	queue *queue
}

// matches reports whether a message goes where a binding leads.
func (e *exchange) matches(pattern, key string) bool {
	switch e.kind {
	case kindFanout:
		return true
	case kindTopic:
		return topicMatches(pattern, key)
	}
	return pattern == key
}

// topicMatches compares words between dots: * is one word, # any number of them. Both are short.
func topicMatches(pattern, key string) bool {
	p, k := strings.Split(pattern, "."), strings.Split(key, ".")
	if key == "" {
		k = nil
	}
	if pattern == "" {
		p = nil
	}
	// After the last # that was met, the key may be taken up one word later.
	i, j, hash, from := 0, 0, -1, 0
	for j < len(k) {
		switch {
		case i < len(p) && p[i] == "#":
			hash, from = i, j
			i++
		case i < len(p) && (p[i] == "*" || p[i] == k[j]):
			i++
			j++
		case hash >= 0:
			from++
			i, j = hash+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == "#" {
		i++
	}
	return i == len(p)
}
