package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

// TestDocuments: pods are told of the problems that their image does not have, each document once.
func TestDocuments(t *testing.T) {
	hotel := &app.App{Name: "hotel-reservation"}
	mine, other := &problem.Document{Source: []byte("mine")}, &problem.Document{Source: []byte("other")}
	got, err := documents([]*problem.Problem{{App: hotel, Document: mine}, {App: hotel, Document: mine}, {App: hotel, Document: other}})
	if diff := cmp.Diff([]string{"mine", "other"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	shop := &app.App{Name: "shop", Archive: []byte("a tar")}
	_, err = documents([]*problem.Problem{{ID: "mine-detection-1", App: shop, Document: mine}})
	if want := "mine-detection-1 is about shop, an application that no pod has"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
