package hotel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
)

// The faulty build differs from the right one in where it looks for its database.
func TestGeoImage(t *testing.T) {
	images := kit.NewRegistry(Image(nil), GeoImage(nil))
	_, image, err := images.Resolve("yinfangchen/geo:app3")
	if err != nil {
		t.Fatal(err)
	}
	if len(image.Programs) != 1 || image.Programs["/go/bin/geo"] == nil {
		t.Errorf("programs %v", image.Programs)
	}
	var right, wrong config
	for text, c := range map[string]*config{defaultConfig: &right, image.Files["/workspace/config.json"]: &wrong} {
		if err := json.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
	}
	if wrong["GeoMongoAddress"] != "mongodb-geo:27777" {
		t.Errorf("%v", wrong)
	}
	wrong["GeoMongoAddress"] = right["GeoMongoAddress"]
	if d := cmp.Diff(right, wrong); d != "" {
		t.Error(d)
	}
	if _, main, _ := images.Resolve("aiopslab/hotel-reservation:v1"); main.Files["/workspace/config.json"] != defaultConfig || len(main.Programs) != len(programs) {
		t.Error("the right build changed")
	}
}
