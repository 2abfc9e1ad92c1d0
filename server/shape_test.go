package server

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/session"
)

// users tell one experience after another, and count how often they are asked.
func users(list ...session.Experience) (next func() session.Experience, asked *int) {
	asked = new(int)
	return func() session.Experience {
		*asked++
		return list[(*asked-1)%len(list)]
	}, asked
}

func serving(served float64) session.Experience {
	return session.Experience{Served: served, Known: true}
}

// A shaped reward follows how users are served, and adds up to the same whatever an agent does.
func TestShapedReward(t *testing.T) {
	for _, c := range []struct {
		name, reward string
		users        []session.Experience // at the reset, and after each look
		want         []float64            // of the looks, and of the right answer
		invalid      bool
	}{
		{"better and better", `"shaped"`, []session.Experience{serving(0.25), serving(0.5), serving(1)}, []float64{0.25, 0.5, 0}, false},
		{"worse", `"shaped"`, []session.Experience{serving(1), serving(0.5), serving(0)}, []float64{-0.5, -0.5, 1}, false},
		{"nobody comes for a while", `"shaped"`, []session.Experience{serving(0.5), {}, serving(0.75)}, []float64{0, 0.25, 0.25}, false},
		{"with a weight and a discount", `{"users": 2, "discount": 0.5, "step": -1}`, []session.Experience{serving(0.5), serving(1), serving(1)}, []float64{-1, -2, -2}, false},
		{"not asked for", `{"step": -1}`, nil, []float64{-1, -1, 0}, false},
		{"an episode that says nothing", `"shaped"`, []session.Experience{serving(0.5), serving(1), serving(1)}, []float64{0.5, 0, 0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, asked := users(c.users...)
			b := &fakeBackend{users: next}
			answer := submitYes
			if c.invalid {
				b.class, answer = session.Infra, submitNo
			}
			l := newLab(t, Options{}, b)
			path := l.env(`{"problem": "` + faulty + `", "reward": ` + c.reward + `}`)
			info := get[First](l, "POST", path+"/reset", "").Info
			var got []float64
			for _, action := range []string{look, look, answer} {
				r := get[Result](l, "POST", path+"/step", action)
				got = append(got, r.Reward)
				for name := range r.Info {
					if strings.Contains(name, "user") || strings.Contains(name, "served") {
						t.Errorf("the info tells %s", name)
					}
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if *asked != len(c.users) {
				t.Errorf("users were asked %d times", *asked)
			}
			if len(info) != 5 {
				t.Errorf("%v", info)
			}
		})
	}
}

// Discounted as the trainer does, shaping adds up to what it began with, and nothing that an agent does changes that.
func TestShapingAddsUp(t *testing.T) {
	for _, discount := range []float64{1, 0.9, 0.5} {
		s := shaping{users: 3, discount: discount}
		next, _ := users(serving(0.4), serving(0.9), serving(0), serving(0.3), serving(1))
		run := &fakeRun{backend: &fakeBackend{users: next}}
		s.look(t.Context(), run)
		sum, factor := 0.0, 1.0
		for range 4 {
			sum += factor * s.step(t.Context(), run)
			factor *= discount
		}
		if sum += factor * s.last(); math.Abs(sum+3*0.4) > 1e-9 {
			t.Errorf("discount %v: %v", discount, sum)
		}
	}
}

func TestRewardRefused(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	for reward, want := range map[string]string{
		`"shapely"`:          `it is an object, or \"shaped\"`,
		`3`:                  "cannot be read",
		`{"solvd": 3}`:       `did you mean \"solved\"?`,
		`{"users": -1}`:      "reward.users is -1",
		`{"discount": 1.5}`:  "reward.discount is 1.5",
		`{"discount": 0}`:    "reward.discount is 0",
		`{"users": "a lot"}`: "cannot be read",
		`["shaped"]`:         "cannot be read",
	} {
		status, answer := l.do("POST", "/envs", `{"problem": "`+faulty+`", "reward": `+reward+`}`)
		if status != 422 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", reward, status, answer, want)
		}
	}
	for reward, want := range map[string]Reward{
		`"shaped"`:      {Solved: 1, Users: 1, Discount: 1},
		`{}`:            {Solved: 1, Discount: 1},
		`{"failed": 2}`: {Solved: 1, Failed: 2, Discount: 1},
	} {
		e := get[OpenedEnv](l, "POST", "/envs", `{"problem": "`+faulty+`", "reward": `+reward+`}`)
		if e.Reward != want {
			t.Errorf("%s: %+v", reward, e.Reward)
		}
	}
}
