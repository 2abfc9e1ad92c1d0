package redis

import (
	"regexp"
	"strings"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

// forbidden are the names by which a script could reach files of the machine, of which the engine has
// more than the original's, or get at those names without writing them.
var forbidden = regexp.MustCompile(`\b(dofile|loadfile|load|loadstring|require|module|package|debug|_G|getfenv|setfenv)\b`)

// refuse returns the reply to a command with a script that must not run; nil for all others.
func refuse(args []string) []byte {
	script := ""
	switch {
	case (args[0] == "EVAL" || args[0] == "EVAL_RO") && len(args) > 1:
		script = args[1]
	case args[0] == "SCRIPT" && len(args) > 2 && strings.EqualFold(args[1], "LOAD"):
		script = args[2]
	}
	if err := nesting.Check(script, nesting.Query); err != nil {
		return fail("ERR Error compiling script (new function): user_script:1: chunk is %v", err)
	}
	if name := forbidden.FindString(script); name != "" {
		return fail("ERR user_script:1: Script attempted to access nonexistent global variable '%s'", name)
	}
	return nil
}
