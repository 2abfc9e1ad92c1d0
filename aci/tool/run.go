package tool

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The variables that tell a tool where it may go.
const (
	rootVar = "AIOPSLAB_TOOL_ROOT"
	portVar = "AIOPSLAB_TOOL_PORT"
)

// Environ returns the variables that confine a tool, for the environment of its process.
func Environ(root string, port int) []string {
	return []string{rootVar + "=" + root, portVar + "=" + strconv.Itoa(port)}
}

// exitUsage is the exit code of a tool that was not called as [Environ] and the package say.
const exitUsage = 2

// RunTool confines this process as its environment says and runs the tool that args[0] names, with
// all of args. It returns the exit code. Without a word where it may go, nothing is run.
func RunTool(args []string, tools map[string]func(args []string) int) int {
	return run(os.Stderr, os.Getenv, args, tools, Confine)
}

func run(stderr io.Writer, env func(string) string, args []string, tools map[string]func(args []string) int, confine func(string, int) error) int {
	names := strings.Join(slices.Sorted(maps.Keys(tools)), ", ")
	if len(args) == 0 || tools[args[0]] == nil {
		fmt.Fprintf(stderr, "tool: name one of %s\n", names)
		return exitUsage
	}
	port, err := strconv.Atoi(env(portVar))
	if env(rootVar) == "" || err != nil {
		fmt.Fprintf(stderr, "tool: %s and %s must say where %s may go\n", rootVar, portVar, args[0])
		return exitUsage
	}
	if err := confine(env(rootVar), port); err != nil {
		fmt.Fprintf(stderr, "tool: %v\n", err)
		return exitUsage
	}
	return tools[args[0]](args)
}
