package social

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

func TestUniqueIDsGrow(t *testing.T) {
	u := &uniqueID{machine: 7}
	var last int64
	for range 5000 {
		id, err := u.ComposeUniqueId(t.Context(), &socialpb.UniqueIdRequest{})
		if err != nil || id.Id <= last {
			t.Fatalf("%d after %d, %v", id.GetId(), last, err)
		}
		last = id.Id
	}
}

func TestPatterns(t *testing.T) {
	text := "hi @username_1 and @user-2: see http://a.b/c?d=1 or https://xyz, @username_1"
	if got := unique(mentionPattern.FindAllString(text, -1)); !slices.Equal(got, []string{"@username_1", "@user-2"}) {
		t.Errorf("mentions %q", got)
	}
	if got := urlPattern.FindAllString(text, -1); !slices.Equal(got, []string{"http://a.b/c?d=1", "https://xyz"}) {
		t.Errorf("urls %q", got)
	}
}

func TestGraph(t *testing.T) {
	g := graph()
	edges := 0
	for i, v := range g {
		if v.UserID != int64(i) || len(v.Followers) == 0 {
			t.Fatalf("user %d: %+v", i, v)
		}
		edges += len(v.Followers)
		for _, f := range v.Followers {
			if !slices.Contains(g[f].Followees, v.UserID) {
				t.Fatalf("%d is followed by %d, who does not know", i, f)
			}
		}
	}
	if len(g) != 962 || edges != 2*edgeCount {
		t.Errorf("%d users, %d edges", len(g), edges)
	}
	if again := graph(); !slices.EqualFunc(g, again, func(a, b vertex) bool { return slices.Equal(a.Followers, b.Followers) }) {
		t.Error("the graph differs from one time to the next")
	}
}

func TestPostRoundTrip(t *testing.T) {
	p := &socialpb.Post{
		PostId: 1, Creator: &socialpb.Creator{UserId: 2, Username: "u"}, Text: "t", Timestamp: 3, PostType: 1,
		UserMentions: []*socialpb.UserMention{{UserId: 4, Username: "m"}},
		Media:        []*socialpb.Media{{MediaId: 5, MediaType: "png"}},
		Urls:         []*socialpb.Url{{ShortenedUrl: "s", ExpandedUrl: "e"}},
	}
	if got := newPost(p).message(); got.String() != p.String() {
		t.Errorf("%v became %v", p, got)
	}
}

func TestLists(t *testing.T) {
	for value, want := range map[string][]int64{"": nil, "[1,2]": {1, 2}, `["3","04"]`: {3, 4}} {
		r := httptest.NewRequest("POST", "/?ids="+url.QueryEscape(value), nil)
		if got, err := numbers(r, "ids"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"x", `["x"]`, "{}"} {
		r := httptest.NewRequest("POST", "/?ids="+url.QueryEscape(value), nil)
		if got, err := numbers(r, "ids"); err == nil {
			t.Errorf("%q: %v", value, got)
		}
	}
}
