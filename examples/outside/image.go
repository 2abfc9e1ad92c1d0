package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

// notesImage has one program, which keeps notes in Redis.
func notesImage() kit.Image {
	return kit.Image{
		Names: []string{"example/notes"}, Tags: "v1", Entrypoint: []string{"notes"},
		Programs: map[string]kit.Program{"/bin/notes": notes}, Memory: 10 << 20,
	}
}

// notes takes a note by POST /notes?text=..., answers with its number, and gives it back by GET /notes/NUMBER. It has
// logs, metrics and traces by package service.
func notes(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "notes"})
	if err != nil {
		return err
	}
	defer s.Close()
	store := s.Redis(env.Getenv("STORE"))
	if _, err := store.Do(ctx, service.Command{"PING"}); err != nil {
		return s.Fatal(ctx, "the store does not answer", err)
	}
	mux := http.NewServeMux()
	const cost = 300 * time.Microsecond // of a request, in a processor's time
	s.HandleFunc(mux, "GET /{$}", "/", cost, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Write a note with POST /notes?text=...")
	})
	s.HandleFunc(mux, "POST /notes", "/notes", cost, func(w http.ResponseWriter, r *http.Request) {
		id := strings.ToLower(rand.Text())
		if _, err := store.Do(r.Context(), service.Command{"SET", "note:" + id, r.FormValue("text")}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "{\"id\": %q}\n", id)
	})
	s.HandleFunc(mux, "GET /notes/{id}", "/notes/{id}", cost, func(w http.ResponseWriter, r *http.Request) {
		found, err := store.Strings(r.Context(), "MGET", "note:"+r.PathValue("id"))
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case found[0] == "":
			http.NotFound(w, r)
		default:
			fmt.Fprintf(w, "{\"text\": %q}\n", found[0])
		}
	})
	return s.ServeHTTP(ctx, mux, ":8080")
}
