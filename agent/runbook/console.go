package runbook

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
)

// maxLooks is how many calls are made before the agent submits. Runs have thirty steps by default.
const maxLooks = 28

// helpers are functions for the shell that the commands below use: they keep of long outputs what
// matters. An engineer has such a file, too.
//
//go:embed helpers.sh
var helpers string

// console is where the investigation makes its calls.
type console struct {
	yield       func(string) bool
	observation string // the answer to the last call
	looks       int
	most        int             // looks that can be made
	ctx         context.Context // of the response that is waited for
	closed      bool
	setup       string // what prepare runs
	refused     bool   // something was, because a transaction is open
	pages       string // what the pager has said since this was last cleared
}

// say makes a call and returns what came of it. Nothing comes once the console is closed or the
// calls are used up.
func (c *console) say(thought, call string) string {
	if c.closed || c.looks >= c.most {
		return ""
	}
	c.looks++
	return c.send(thought, call)
}

// inTransaction is how a refusal ends of what cannot be taken back.
const inTransaction = "commit or abort the transaction first"

func (c *console) send(thought, call string) string {
	if !c.yield("Thought: " + thought + "\n\nAction:\n" + call) {
		c.closed = true
		return ""
	}
	text, pages := aci.CutPages(c.observation)
	c.heard(pages)
	text = strings.TrimRight(text, " \n")
	c.refused = c.refused || strings.Contains(text, inTransaction)
	return strings.TrimRight(strings.TrimSuffix(text, aci.NextAction), "\n")
}

// heard keeps what the pager says.
func (c *console) heard(pages string) {
	if pages = aci.Paged(pages); pages != "" {
		c.pages = strings.TrimSpace(c.pages + "\n" + pages)
	}
}

// call calls an action.
func (c *console) call(thought, action string, args ...any) string {
	return c.say(thought, agent.Call(action, args...))
}

// defaultSeconds is how long a command may take if nothing is said.
const defaultSeconds = 30

// lost finds a shell that has been started anew and does not know the helpers any more.
var lost = regexp.MustCompile(`(brief|of|recent|complaints|ports|connect|measure|survey): command not found`)

// shell runs a command that may take some seconds.
func (c *console) shell(thought, command string, seconds int) string {
	text := c.run(thought, command, seconds)
	if lost.MatchString(text) {
		c.prepare("The shell was started anew. I set my helpers up again.")
		text = c.run("Once more.", command, seconds)
	}
	return text
}

// prepare sets the helpers up. It does not count as a look.
func (c *console) prepare(thought string) {
	if !c.closed {
		c.send(thought, agent.Call("exec_shell", c.setup))
	}
}

func (c *console) run(thought, command string, seconds int) string {
	text := `"` + command + `"`
	switch {
	case strings.Contains(command, `"""`) || strings.Contains(command, "```") || strings.HasSuffix(command, `"`):
		return c.say(thought, agent.Call("exec_shell", command, seconds))
	case strings.ContainsAny(command, "\"\\\n"):
		text = `r"""` + command + `"""` // To be read by people too, so without escapes.
	}
	if seconds != defaultSeconds {
		text += fmt.Sprintf(", timeout=%d", seconds)
	}
	return c.say(thought, "```\nexec_shell("+text+")\n```")
}

// troubled finds answers of an API server that did not do what it was asked for, but may later.
var troubled = regexp.MustCompile(
	`(?m)^(Error from server \((Forbidden|Timeout|ServiceUnavailable|InternalError|TooManyRequests)\)|Unable to connect to the server)`)

// ask runs a command that reads from the API server, and once more if that was in trouble.
func (c *console) ask(thought, command string) string {
	text := c.shell(thought, command, defaultSeconds)
	if troubled.MatchString(text) {
		text = c.shell("The API server did not answer that. I wait a moment and ask again.", "sleep 3; "+command,
			defaultSeconds)
	}
	return text
}

// submit makes the last call. It is made even if the looks are used up.
func (c *console) submit(thought string, answer ...any) {
	if !c.closed {
		c.send(thought, agent.Call("submit", answer...))
	}
}

// left is how many calls can still be made.
func (c *console) left() int {
	if c.closed {
		return 0
	}
	return c.most - c.looks
}
