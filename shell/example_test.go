package shell_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// A session runs one script after another; variables and functions stay.
func ExampleSession() {
	s := shell.NewSession(kit.HostEnv())
	defer s.Close()
	ctx, none := context.Background(), strings.NewReader("")
	s.Run(ctx, `pods=3; double() { echo $(($1 * 2)); }`, none, os.Stdout, os.Stdout)
	code := s.Run(ctx, `double $pods; test $pods -gt 5`, none, os.Stdout, os.Stdout)
	fmt.Println("exit code", code)
	// Output:
	// 6
	// exit code 1
}
