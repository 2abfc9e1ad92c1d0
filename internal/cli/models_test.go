package cli_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"

	"github.com/aiopslab/aiopslab/llm/llmtest"
)

// modelKey is the key that withmodel gives a command, and that no record may have.
const modelKey = "sk-test-0123456789abcdefghijklmnop"

var crashes = regexp.MustCompile(`CrashLoopBackOff|Error|0/1`)

// models are what withmodel plays, by name.
var models = map[string]llmtest.Engineer{
	// It looks at the pods, and calls a crash an anomaly.
	"gpt-4o": {
		Looks: []string{`exec_shell("kubectl get pods -n test-hotel-reservation")`, `get_alerts("test-hotel-reservation")`},
		Answer: func(seen string) string {
			if crashes.MatchString(seen) {
				return `submit("Yes")`
			}
			return `submit("No")`
		},
	},
	// It answers before it looks.
	"blind": {Answer: func(string) string { return `submit("No")` }},
	// It judges others.
	"referee": {Answer: func(string) string { return "Rating: [[7]]" }},
}

// withModel runs a command with an endpoint that plays models: withmodel CMD ARG... After two requests
// the endpoint is busy, and then it breaks off.
func withModel() int {
	play := func(n int, r llmtest.Request) llmtest.Answer {
		if r.Header.Get("Authorization") != "Bearer "+modelKey {
			return llmtest.Answer{Status: 401, Message: "Incorrect API key provided"}
		}
		e, ok := models[r.Model]
		if !ok {
			return llmtest.Answer{Status: 404, Code: "model_not_found", Message: "The model does not exist"}
		}
		return e.Play(n, r)
	}
	s := httptest.NewServer(llmtest.Handler(llmtest.Flaky(play, map[int]llmtest.Answer{
		3: {Status: 429, RetryAfter: "0", Message: "Rate limit reached"},
		4: {Text: "Thought: I was about to say", CutAfter: 2},
	})))
	defer s.Close()
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+s.URL+"/v1", "OPENAI_API_KEY="+modelKey)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
