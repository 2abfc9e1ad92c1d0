package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// logVariable stands for the flags of the log, as in "debug" or "info,json".
const logVariable = "AIOPSLAB_LOG"

// logFlags say what is logged on standard error. Flags count more than the variable, and that more than
// what a command does by itself.
type logFlags struct{ given, variable logs.Settings }

// add adds the flags to all commands.
func (f *logFlags) add(root *cobra.Command, s *State) {
	flags := root.PersistentFlags()
	flags.Var(&wordFlag{&f.given.Level, "level", logs.Levels}, "log-level",
		"log on standard error from this `level` on: "+alternatives(logs.Levels)+" (default $"+logVariable+
			", info for serve, else off)")
	flags.Var(&wordFlag{&f.given.Format, "format", logs.Formats}, "log-format",
		"log in this `format`: "+alternatives(logs.Formats)+" (default $"+logVariable+", else text)")
	completeFlag(root, "log-level", func() []string { return logs.Levels })
	completeFlag(root, "log-format", func() []string { return logs.Formats })
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if slices.Contains(ownProcesses, c.Name()) {
			return nil // Their supervisor has said what is wrong.
		}
		var err error
		if f.variable, err = logs.Parse(s.Env(logVariable)); err != nil {
			return fail(ExitUsage, fmt.Errorf("%s %w", logVariable, err), "")
		}
		return nil
	}
}

// ownProcesses are the commands that this program starts itself. They log nothing: what a worker has to
// say goes to its supervisor, and the tools are an agent's.
var ownProcesses = []string{"worker", "tool"}

// logger returns the log of a command that logs this much if nobody says otherwise. Secrets are what it
// knows that must not be written, besides those in the environment.
func (s *State) logger(level string, secrets ...string) *slog.Logger {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); confidential(name) {
			secrets = append(secrets, secretIn(name, value))
		}
	}
	return s.logs.settings().Or(logs.Settings{Level: level}).New(s.Stderr, secrets...)
}

// settings are what the user says.
func (f *logFlags) settings() logs.Settings { return f.given.Or(f.variable) }

// args are the flags for a process of this program that logs as the user says, or not at all.
func (f *logFlags) args() []string {
	s := f.settings().Or(logs.Settings{Level: logs.Off, Format: "text"})
	return []string{"--log-level", s.Level, "--log-format", s.Format}
}

// secretIn is the secret that a variable has, or that is in the file it names. What cannot be read is told
// by whoever needs it.
func secretIn(name, value string) string {
	if !strings.HasSuffix(name, "_FILE") {
		return value
	}
	if st, err := os.Stat(value); err != nil || !st.Mode().IsRegular() || st.Size() > maxHeader {
		return "" // A pipe can be read only once; a longer key fits into no request.
	}
	b, _ := os.ReadFile(value)
	return strings.TrimSpace(string(b))
}

// wordFlag is a flag that is one of a few words.
type wordFlag struct {
	value *string
	kind  string
	words []string
}

func (c *wordFlag) String() string { return *c.value }
func (c *wordFlag) Type() string   { return c.kind }

func (c *wordFlag) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("want " + alternatives(c.words))
	}
	*c.value = word
	return nil
}
