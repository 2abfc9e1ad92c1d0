package token

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/klauspost/compress/zstd"
	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "make the data anew")

// tokens is how many cl100k_base has, without the special ones.
const tokens = 100_256

func TestCount(t *testing.T) {
	// As tiktoken counts in cl100k_base; special tokens are text like any other.
	for text, want := range map[string]int{"": 0, "hello world": 2, "kubectl get pods -n test-hotel-reservation": 10} {
		if got := Count(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	if Count("<|endoftext|>") == 0 {
		t.Error("a special token in a text is not counted")
	}
}

// TestVocabulary compares the data with the library's tables.
func TestVocabulary(t *testing.T) {
	library, want := codec.NewCl100kBase(), make([]string, tokens)
	for i := range want {
		text, err := library.Decode([]uint{uint(i)})
		if err != nil || (len(text) == 1) != (i < singles) {
			t.Fatalf("token %d: %q, %v", i, text, err)
		}
		want[i] = text
	}
	if *update {
		write(t, want)
		return
	}
	ranks := vocabulary()
	if len(ranks) != tokens {
		t.Fatalf("%d tokens, want %d", len(ranks), tokens)
	}
	for i, text := range want {
		if rank, ok := ranks[text]; !ok || int(rank) != i {
			t.Fatalf("token %q has rank %d, want %d", text, rank, i)
		}
	}
}

// write writes the data.
func write(t *testing.T, list []string) {
	t.Helper()
	ranks, data, planes := map[string]int{}, []byte{}, [6][]byte{}
	for i, text := range list {
		ranks[text] = i
		if i < singles {
			data = append(data, text[0])
			continue
		}
		first, second := split(t, ranks, text)
		for p, rank := range []int{first, first >> 8, first >> 16, second, second >> 8, second >> 16} {
			planes[p] = append(planes[p], byte(rank))
		}
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	data = z.EncodeAll(append(data, slices.Concat(planes[:]...)...), nil)
	if err := os.WriteFile("cl100k_base.zst", data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// split returns two tokens that make a longer one.
func split(t *testing.T, ranks map[string]int, text string) (first, second int) {
	t.Helper()
	for i := 1; i < len(text); i++ {
		first, ok := ranks[text[:i]]
		second, too := ranks[text[i:]]
		if ok && too {
			return first, second
		}
	}
	t.Fatalf("%q is not made of two tokens", text)
	return 0, 0
}

func TestBrokenVocabulary(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	cut, wrong := z.EncodeAll(make([]byte, 300), nil), z.EncodeAll([]byte(strings.Repeat("\xff", singles+6)), nil)
	for _, data := range [][]byte{[]byte("no zstd"), compressed[:len(compressed)/2], cut, wrong} {
		if _, err := readVocabulary(data); err == nil {
			t.Errorf("%d bytes that are no vocabulary are read without an error", len(data))
		}
	}
}

// TestLikeTheLibrary compares the counts of the repository's own texts with the library's.
func TestLikeTheLibrary(t *testing.T) {
	library := codec.NewCl100kBase()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "*.go", "../../problem/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := library.Count(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := Count(string(text)); got != want {
				t.Errorf("%s: %d tokens, the library counts %d", name, got, want)
			}
		}
	}
}

// TestLikeThePattern compares drawn and odd texts with OpenAI's definition. The library does not follow it everywhere:
// it counts no token for "\x7f", and two for "\n \n".
func TestLikeThePattern(t *testing.T) {
	for _, text := range []string{
		"I've we'LL it'ſ 'S 'x '", "a  b   c\n\n  d\t\te \n", "   ", " \r\n \v\u0085\u00a0\u2003x", "１２３４ ٣٤٥٦ 12345 ½",
		"日本語のテキスト 👩‍👩‍👧‍👦 ǅungla é é", "\xff\xfe broken \xe2\x82 utf-8", strings.Repeat("a", 600), strings.Repeat(" ", 600) + "x",
		strings.Repeat("=-", 300), strings.Repeat("\n", 300), "\x00\x01", "\u200b\u200b\ufeff", "\x7f", "t\n \n",
	} {
		compare(t, text)
	}
	alphabet := []rune("aAbe sStTlLdDmMrRvV'\"0149 \t\r\n.,;:-/_{}[]()<>|@#é日٣½\u00a0\u0301\u017f\U0001f600")
	draw := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := make([]rune, draw.IntN(60))
		for i := range text {
			text[i] = alphabet[draw.IntN(len(alphabet))]
		}
		compare(t, string(text))
	}
}

func FuzzCount(f *testing.F) {
	f.Add("it's 100% \n\n  fine")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1000 { // The slow way takes the square of it.
			compare(t, text)
		}
	})
}

// pattern cuts a text into pieces, as OpenAI published it; "ſ" is an "s" to who ignores case.
var pattern = regexp2.MustCompile(`(?i:'[sſ]|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|`+
	` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None)

func compare(t *testing.T, text string) {
	want := 0
	match, err := pattern.FindStringMatch(text)
	for rest := string([]rune(text)); rest != ""; match, err = pattern.FindNextMatch(match) {
		if err != nil {
			t.Fatal(err)
		}
		piece := rest[:cut(rest)]
		if match == nil || match.String() != piece {
			t.Fatalf("%.200q: the pattern does not cut at %.200q", text, piece)
		}
		want += mergeSlowly(piece)
		rest = rest[len(piece):]
	}
	if got := Count(text); got != want {
		t.Errorf("%.200q: %d tokens, want %d", text, got, want)
	}
}

// mergeSlowly does what a count is defined by, with a look at the whole piece for each join.
func mergeSlowly(piece string) int {
	parts := make([]string, len(piece))
	for i := range parts {
		parts[i] = piece[i : i+1]
	}
	for {
		at, lowest := -1, int32(tokens)
		for i := range len(parts) - 1 {
			if rank, ok := vocabulary()[parts[i]+parts[i+1]]; ok && rank < lowest {
				at, lowest = i, rank
			}
		}
		if at < 0 {
			return len(parts)
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

func BenchmarkCount(b *testing.B) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"prose": string(text), "one piece": strings.Repeat("xq", 50_000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Count(text)
			}
		})
		b.Run(name+", library", func(b *testing.B) {
			library := codec.NewCl100kBase()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := library.Count(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
