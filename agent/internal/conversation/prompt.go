package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aiopslab/aiopslab/record"
)

// Prompt is a prompt in a file. The first line is "version: N"; change N whenever the text changes. A line "===
// user" separates the system's message from the user's first one. Names in braces stand for what an agent is told,
// see [Conversation].
type Prompt struct {
	record.Prompt
	system, user string
}

// userMark parts the two messages of a prompt.
const userMark = "\n=== user\n"

// MustRead reads a prompt that is part of the program.
func MustRead(files fs.FS, file, name string) *Prompt {
	b, err := fs.ReadFile(files, file)
	if err != nil {
		panic(err)
	}
	head, text, _ := strings.Cut(string(b), "\n")
	version, ok := strings.CutPrefix(head, "version: ")
	if !ok {
		panic(fmt.Sprintf("%s: the first line of a prompt is its version", file))
	}
	sum := sha256.Sum256(b)
	p := &Prompt{Prompt: record.Prompt{Name: name, Version: version, SHA256: hex.EncodeToString(sum[:])}}
	p.system, p.user, _ = strings.Cut(text, userMark)
	return p
}

// Fill returns the two messages of the prompt with words in place of the names in braces. Names and
// words come in pairs.
func (p *Prompt) Fill(words ...string) (system, user string) {
	var pairs []string
	for i := 0; i+1 < len(words); i += 2 {
		pairs = append(pairs, "{"+words[i]+"}", words[i+1])
	}
	r := strings.NewReplacer(pairs...)
	return strings.TrimSpace(r.Replace(p.system)), strings.TrimSpace(r.Replace(p.user))
}

// With is the prompt with words in place of further names in braces. Names and words come in pairs.
func (p *Prompt) With(words ...string) *Prompt {
	var pairs []string
	for i := 0; i+1 < len(words); i += 2 {
		pairs = append(pairs, "{"+words[i]+"}", words[i+1])
	}
	r := strings.NewReplacer(pairs...)
	return &Prompt{Prompt: p.Prompt, system: r.Replace(p.system), user: r.Replace(p.user)}
}
