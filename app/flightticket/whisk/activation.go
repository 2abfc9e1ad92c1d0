package whisk

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Activation is the record of one invocation, as OpenWhisk has it.
type Activation struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	Subject     string       `json:"subject"`
	ID          string       `json:"activationId"`
	Cause       string       `json:"cause,omitempty"` // the activation that invoked it
	Start       int64        `json:"start"`           // in milliseconds since the epoch, as End
	End         int64        `json:"end"`
	Duration    int64        `json:"duration"` // in milliseconds, /init included
	StatusCode  int          `json:"statusCode"`
	Response    Response     `json:"response"`
	Logs        []string     `json:"logs"`
	Annotations []Annotation `json:"annotations"`
}

// Response is how an activation ended.
type Response struct {
	Status     string          `json:"status"`
	StatusCode int             `json:"statusCode"`
	Success    bool            `json:"success"`
	Result     json.RawMessage `json:"result"`
}

// Annotation is a fact about an activation.
type Annotation struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// How an activation can end: by what it returned, by an error that it returned, because its program does not work, or
// because the layer could not run it.
const (
	succeeded = iota
	applicationError
	developerError
	internalError
)

var statuses = [...]string{"success", "application error", "action developer error", "whisk internal error"}

// guest is the namespace and the subject of all activations.
const guest = "guest"

// newID draws the ID of an activation.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// begin is the record of an invocation that was accepted just now.
func begin(action, cause string, now time.Time) *Activation {
	if len(cause) != 32 {
		cause = ""
	}
	return &Activation{
		Namespace: guest, Name: action, Version: "0.0.1", Subject: guest, ID: newID(), Cause: cause,
		Start: now.UnixMilli(), Logs: []string{},
	}
}

// end fills in how it ended. Init is how long the action took to be initialised, 0 if it was warm.
func (a *Activation) end(o outcome, began, now time.Time, waited time.Duration) {
	a.End, a.StatusCode = now.UnixMilli(), o.status
	a.Duration = max(0, now.Sub(began)-waited).Milliseconds()
	a.Response = Response{
		Status: statuses[o.status], StatusCode: o.status, Success: o.status == succeeded, Result: o.result,
	}
	if o.logs != nil {
		a.Logs = o.logs
	}
	a.Annotations = []Annotation{
		{"path", guest + "/" + a.Name}, {"kind", "go:default"}, {"waitTime", waited.Milliseconds()},
	}
	if o.cold {
		a.Annotations = append(a.Annotations, Annotation{"initTime", o.init.Milliseconds()})
	}
	if o.pod != "" {
		a.Annotations = append(a.Annotations, Annotation{"pod", o.pod})
	}
}

// outcome is what came of an invocation.
type outcome struct {
	status int
	result json.RawMessage
	logs   []string
	cold   bool // the pod had to be initialised
	init   time.Duration
	pod    string
}

// failed is an outcome with an error in its result.
func failed(status int, text string) outcome {
	b, _ := json.Marshal(map[string]string{"error": text})
	return outcome{status: status, result: b}
}
