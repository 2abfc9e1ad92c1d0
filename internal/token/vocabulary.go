package token

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// compressed has the tokens of cl100k_base in the order of their ranks, each after a byte with its length. It is made
// from the tables of github.com/tiktoken-go/tokenizer, which take 3 MB of a program as code:
//
//	go test ./internal/token -update
//
//go:embed cl100k_base.zst
var compressed []byte

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
	ranks := make(map[string]int32, 100_256)
	for text := string(data); text != ""; {
		end := 1 + int(text[0])
		if end > len(text) {
			return nil, fmt.Errorf("token %d is cut off", len(ranks))
		}
		ranks[text[1:end]] = int32(len(ranks))
		text = text[end:]
	}
	return ranks, nil
}
