package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

const ownDocument = `id: mine-{task}-1
title: nothing is wrong with mine
app: hotel-reservation
load: {rate: 10}
tasks: [detection]
`

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// Problems of one's own come out of the operator's directory, or with the request.
func TestOwnProblems(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.yaml", ownDocument)
	write("notes.txt", "no problem")
	own, err := problemtest.Library(t).With("../examples/shop", dir)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, Options{Library: own}, &fakeBackend{library: own})
	if ids := get[[]string](l, "GET", "/problems", ""); ids[len(ids)-1] != "mine-detection-1" {
		t.Errorf("%v", ids)
	}
	sent := strings.Replace(ownDocument, "mine-", "sent-", 1)
	two := strings.Replace(strings.Replace(ownDocument, "mine-", "two-", 1), "[detection]", "[detection, localization]", 1)
	shop := strings.NewReplacer("mine-", "shop-", "hotel-reservation", "corner-shop").Replace(ownDocument)
	for body, want := range map[string]string{
		`{"problem": "mine-detection-1"}`:                                      "mine-detection-1",
		`{"document": ` + quoted(shop) + `}`:                                   "shop-detection-1",
		`{"document": ` + quoted(sent) + `}`:                                   "sent-detection-1",
		`{"document": ` + quoted(two) + `, "problem": "two-detection-1"}`:      "two-detection-1",
		`{"document": ` + quoted(two) + `, "problem": "detection"}`:            "two-detection-1",
		`{"document": ` + quoted(sent) + `, "problem": "sent-detection-1"}`:    "sent-detection-1",
		`{"document": ` + quoted(sent) + `, "seed": 3, "name": "somebody el"}`: "sent-detection-1",
	} {
		path := l.open(body)
		if o := get[Outcome](l, "POST", path+"/submit", `{"answer": "No"}`); o.Problem != want || !o.Solved {
			t.Errorf("%s: %+v", body, o)
		}
	}
	env := "/envs/" + get[Env](l, "POST", "/envs", `{"problems": ["mine-detection-1"], "documents": [`+quoted(sent)+`]}`).ID
	seen := map[any]bool{}
	for range 20 {
		get[First](l, "POST", env+"/reset", `{}`)
		seen[get[Result](l, "POST", env+"/step", `{"action": "submit(\"No\")"}`).Info["problem"]] = true
	}
	if d := cmp.Diff(map[any]bool{"mine-detection-1": true, "sent-detection-1": true}, seen); d != "" {
		t.Error(d)
	}
	if e := get[[]Env](l, "GET", "/envs", ""); len(e[0].Problems) != 2 {
		t.Errorf("%+v", e)
	}
}

// What is no problem is refused, and no file of the server's is read for it.
func TestOwnProblemsRefused(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	for body, want := range map[string]string{
		`{"problem": "/etc/passwd"}`:                                                                       "there is no problem",
		`{"problem": "../../../../etc/passwd"}`:                                                            "there is no problem",
		`{"problem": "server/own_test.go"}`:                                                                "there is no problem",
		`{"problem": "mine-detection-1"}`:                                                                  "there is no problem",
		`{"document": "/etc/passwd"}`:                                                                      "document",
		`{"document": "` + "!!binary x" + `"}`:                                                             "document",
		`{"document": "id: x", "problem": "/etc/passwd"}`:                                                  "document",
		`{"document": ` + quoted("file: /etc/passwd") + `}`:                                                "unknown field",
		`{"document": ` + quoted(strings.Replace(ownDocument, "mine-", "../../mine-", 1)) + `}`:            "want letters",
		`{"document": ` + quoted(strings.Replace(ownDocument, "mine-", strings.Repeat("m", 200), 1)) + `}`: "longer than",
		`{"document": ` + quoted(strings.Replace(ownDocument, "mine-{task}-1", "noop_{task}_hotel_reservation-1", 1)) + `}`: "a problem noop_detection_hotel_reservation-1 already",
		`{"document": ` + quoted(ownDocument) + `, "problem": "localization"}`:                                              "the document has mine-detection-1",
		`{"document": ` + quoted("a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e]\n") + `}`: "document",
	} {
		status, answer := l.do("POST", "/sessions", body)
		if status != 404 && status != 422 || !strings.Contains(answer, want) || strings.Contains(answer, "root:") || strings.Contains(answer, "package server") {
			t.Errorf("%.200s: %d %.300s", body, status, answer)
		}
	}
	l.refused("POST", "/envs", `{"documents": ["/etc/passwd"]}`, 422, "document")
	l.refused("POST", "/envs", `{"documents": [`+strings.Repeat(`"x",`, 1000)+`"x"]}`, 422, "document")
}

// What cannot be run where the sessions are is refused before anything is started for it.
func TestLacks(t *testing.T) {
	library := problemtest.Library(t)
	l := newLab(t, Options{
		Library: library, NoEnvs: "there is no way back here",
		Lacks: func(p *problem.Problem) string {
			if p.Healthy {
				return ""
			}
			return "nothing can be wrong here"
		},
	}, &fakeBackend{library: library})
	id := "revoke_auth_mongodb-detection-1"
	l.refused("POST", "/sessions", `{"problem": "`+id+`"}`, 422, "nothing can be wrong here")
	l.refused("POST", "/envs", `{"problem": "`+id+`-healthy"}`, 422, "there is no way back here")
	l.open(`{"problem": "` + id + `-healthy"}`)
}
