package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"
)

// docPrograms check the words of a command of a document, by its program. They are called with the
// scratch directory of the documents as the working directory.
var docPrograms map[string]func(words []string, inline bool) error

func init() {
	free := func([]string, bool) error { return nil } // Nothing of ours is in its words.
	docPrograms = map[string]func([]string, bool) error{
		"aiopslab": checkLab, "kubectl": checkKubectl, "make": checkMake, "go": checkPaths, "python3": checkPaths, "sh": checkSh,
		"claude": behindDash, "./my-test.sh": free, "./test.sh": free, "curl": free, "jq": free, "export": free, "submit": free, "source": free,
		"labapp": free, "pip": checkPaths, "kind": free, "docker": free, "ctr": free, "helm": free,
		"tar": free, "sha256sum": free, "sudo": free, "man": free, "aiopslab_1.0.0_linux_amd64/aiopslab": checkLab,
	}
}

// checkCommand is an error if a command cannot be what it says: it is not a shell's, or names a
// command, flag, problem, file or target that is not there.
func checkCommand(text string, inline bool) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return err
	}
	var errs []error
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words []string
			for _, w := range call.Args {
				words = append(words, wordOf(w))
			}
			errs = append(errs, checkWords(words, inline))
		}
		return true
	})
	return errors.Join(errs...)
}

// wordOf is a word as its program gets it, with variables as they are written.
func wordOf(w *syntax.Word) string {
	var b strings.Builder
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(n.Value)
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		case *syntax.ParamExp:
			b.WriteString("$" + n.Param.Value)
			return false
		}
		return true
	})
	return b.String()
}

func checkWords(words []string, inline bool) error {
	check := docPrograms[strings.TrimPrefix(words[0], "bin/")]
	if check == nil {
		return fmt.Errorf("the program %s is not one that the docs use; if it shall be, add it to docPrograms", words[0])
	}
	return check(words[1:], inline)
}

// behindDash checks the command that follows a double dash.
func behindDash(words []string, inline bool) error {
	i := slices.Index(words, "--")
	if i < 0 || i+1 == len(words) {
		return nil
	}
	if inline && strings.Trim(words[i+1], "[]") == "COMMAND" {
		return nil
	}
	return checkWords(words[i+1:], inline)
}

func checkLab(words []string, inline bool) error {
	s := Process()
	s.Stdout, s.Stderr = io.Discard, io.Discard
	root := newRoot(s)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpFlag()
	root.InitDefaultHelpCmd()
	c, rest, err := root.Find(words)
	if err != nil || c == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no command %v: %w", words, err)
	}
	if c.Name() == "kubectl" {
		return checkKubectl(rest, inline)
	}
	c.InitDefaultHelpFlag()
	if err := parseFlags(c, rest, inline); err != nil {
		return err
	}
	args := c.Flags().Args()
	if n := c.ArgsLenAtDash(); n >= 0 {
		if err := behindDash(rest, inline); err != nil {
			return err
		}
		args = args[:n]
	}
	if inline { // PROBLEM is no problem.
		return nil
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	return checkNames(s, c, args)
}

// checkNames looks for the problems and applications that a command names.
func checkNames(s *State, c *cobra.Command, args []string) error {
	var errs []error
	if slices.Contains([]string{"run", "play", "shell", "mcp", "describe", "verify", "audit"}, c.Name()) {
		choice := ""
		if f := c.Flags().Lookup("task"); f != nil {
			choice = f.Value.String()
		}
		for _, id := range args {
			_, err := findProblem(s, id, choice)
			errs = append(errs, err)
		}
	}
	names := []string{}
	if f := c.Flags().Lookup("app"); f != nil && f.Changed {
		names = append(names, f.Value.String())
	}
	if c.Name() == "apps" {
		names = append(names, args...)
	}
	for _, name := range names {
		_, err := findApp(s, name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// parseFlags reads flags. A text may name one without its value.
func parseFlags(c *cobra.Command, words []string, inline bool) error {
	err := c.ParseFlags(words)
	if _, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && inline {
		return nil
	}
	return err
}

func checkKubectl(words []string, inline bool) error {
	s := Process()
	s.Stdout, s.Stderr = io.Discard, io.Discard
	root := newStockKubectl(s, []string{"kubectl"})
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if c == root && len(words) > 0 {
		return fmt.Errorf("kubectl has no command %v", words)
	}
	return parseFlags(c, rest, inline)
}

func checkMake(words []string, _ bool) error {
	b, err := os.ReadFile("Makefile")
	if err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(w, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(w)+`:`).Match(b) {
			return fmt.Errorf("make has no target %s", w)
		}
	}
	return nil
}

// checkPaths looks for the files that are named.
func checkPaths(words []string, _ bool) error {
	for _, w := range words {
		if strings.HasPrefix(w, "./") || strings.HasSuffix(w, ".py") || strings.HasSuffix(w, ".sh") {
			if _, err := os.Stat(filepath.FromSlash(w)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSh(words []string, inline bool) error {
	if len(words) > 1 && words[0] == "-c" {
		if inline && words[1] == "..." {
			return nil
		}
		return checkCommand(words[1], inline)
	}
	return checkPaths(words, inline)
}
