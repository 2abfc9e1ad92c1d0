package flower

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aiopslab/aiopslab/kit"
)

// taskFile is what an app is told of the model and of training, in its working directory.
const taskFile = "task.json"

// task is what a server app and its client apps must agree on, and how a client app learns.
type task struct {
	Layers   []layer `json:"layers"`
	Epochs   int     `json:"local-epochs"`
	Rate     float32 `json:"learning-rate"`
	Pictures int     `json:"pictures"`
}

// maxEpochs and maxPictures bound what a task can ask for.
const maxEpochs, maxPictures = 20, 5000

// readTask reads the task of an app.
func readTask(env *kit.Env) (t task, err error) {
	b, err := env.ReadFile(taskFile)
	if err != nil {
		return t, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, fmt.Errorf("%s: %w", taskFile, err)
	}
	if t.Epochs < 0 || t.Epochs > maxEpochs || t.Pictures < 0 || t.Pictures > maxPictures {
		return t, fmt.Errorf("%s: there can be %d local-epochs and %d pictures at most", taskFile, maxEpochs,
			maxPictures)
	}
	return t, nil
}
