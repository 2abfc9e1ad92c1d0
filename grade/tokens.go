package grade

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// encoding is cl100k_base, in which AIOpsLab counts.
var encoding = sync.OnceValue(codec.NewCl100kBase)

// Tokens counts the tokens of a text as OpenAI's models of the GPT-3.5 and GPT-4 families do, which
// is an estimate for any other.
func Tokens(text string) int {
	n, err := encoding().Count(text)
	if err != nil {
		return 0
	}
	return n
}
