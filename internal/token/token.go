// Package token counts tokens, the units in which models are paid and AIOpsLab measures an agent's effort.
package token

import "unicode/utf8"

// Count counts the tokens of a text as OpenAI's models of the GPT-3.5 and GPT-4 families do (cl100k_base). It is an
// estimate for any other model. A special token in a text counts as the text it is, and a byte that is no UTF-8 as the
// replacement character that a model is sent for it.
func Count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	ranks, n := vocabulary(), 0
	for text != "" {
		end := cut(text)
		if piece := text[:end]; isToken(ranks, piece) {
			n++
		} else {
			n += merge(ranks, piece)
		}
		text = text[end:]
	}
	return n
}

func isToken(ranks map[string]int32, s string) bool {
	_, ok := ranks[s]
	return ok
}
