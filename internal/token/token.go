// Package token counts tokens, the units in which models are paid and AIOpsLab measures an agent's effort.
package token

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// encoding is cl100k_base, in which AIOpsLab counts.
var encoding = sync.OnceValue(codec.NewCl100kBase)

// Count counts the tokens of a text as OpenAI's models of the GPT-3.5 and GPT-4 families do, which
// is an estimate for any other.
func Count(text string) int {
	n, err := encoding().Count(text)
	if err != nil {
		return 0
	}
	return n
}
