package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Cache returns a model that keeps the replies of another one as files in a directory, and gives
// them again when the same is asked. It makes runs repeatable and cheap, and hides that a model does
// not always say the same.
func Cache(m Model, dir string) (Model, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the cache of replies: %w", err)
	}
	return &cached{m, dir}, nil
}

type cached struct {
	Model
	dir string
}

func (m *cached) Chat(ctx context.Context, r Request) (Reply, error) {
	question, err := json.Marshal(struct {
		Model string `json:"model"`
		Request
	}{m.Name(), r})
	if err != nil {
		return Reply{}, err
	}
	sum := sha256.Sum256(question)
	file := filepath.Join(m.dir, hex.EncodeToString(sum[:])+".json")
	var reply Reply
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &reply) == nil {
		reply.Cached, reply.Attempts = true, 0
		if r.Delta != nil {
			r.Delta(reply.Text)
		}
		return reply, nil
	}
	reply, err = m.Model.Chat(ctx, r)
	if err != nil {
		return reply, err
	}
	if err := save(file, reply); err != nil {
		return reply, fmt.Errorf("the cache of replies: %w: %w", ErrUnavailable, err)
	}
	return reply, nil
}

// save writes a reply so that nobody ever reads half of it.
func save(file string, reply Reply) error {
	b, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "reply-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
