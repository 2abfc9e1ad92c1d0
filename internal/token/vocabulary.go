package token

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// compressed has the tokens of cl100k_base in the order of their ranks. The first 256 are bytes. Each of the others is
// two tokens of lower ranks in a row: there are the lowest bytes of all first ranks, then the middle ones and the
// highest, then the same of the second ranks. It is made from the tables of github.com/tiktoken-go/tokenizer, which
// take 3 MB of a program as code:
//
//	go test ./internal/token -update
//
//go:embed cl100k_base.zst
var compressed []byte

// singles is the number of tokens that are one byte.
const singles = 256

// vocabulary returns the rank of each token. It panics if the data in the program cannot be read, which the test does.
var vocabulary = sync.OnceValue(func() map[string]int32 {
	ranks, err := readVocabulary(compressed)
	if err != nil {
		panic(fmt.Sprintf("the vocabulary in the program: %v", err))
	}
	return ranks
})

func readVocabulary(compressed []byte) (map[string]int32, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	data, err := z.DecodeAll(compressed, nil)
	if err != nil {
		return nil, err
	}
	if len(data) < singles || (len(data)-singles)%6 != 0 {
		return nil, fmt.Errorf("%d bytes", len(data))
	}
	pairs, n := data[singles:], (len(data)-singles)/6
	tokens, ranks := make([]string, 0, singles+n), make(map[string]int32, singles+n)
	add := func(text string) {
		ranks[text] = int32(len(tokens))
		tokens = append(tokens, text)
	}
	for _, b := range data[:singles] {
		add(string([]byte{b}))
	}
	for i := range n {
		first := int(pairs[i]) | int(pairs[n+i])<<8 | int(pairs[2*n+i])<<16
		second := int(pairs[3*n+i]) | int(pairs[4*n+i])<<8 | int(pairs[5*n+i])<<16
		if max(first, second) >= len(tokens) {
			return nil, fmt.Errorf("token %d is made of %d and %d", len(tokens), first, second)
		}
		add(tokens[first] + tokens[second])
	}
	return ranks, nil
}
