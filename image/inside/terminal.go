package inside

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/kit"
)

// terminal gives a process its terminal, if its streams are one's. Keys come as they are pressed: the programs have a
// line discipline of their own. Restore sets the terminal back.
func terminal(env *kit.Env) (restore func()) {
	in, ok := env.Stdin.(*os.File)
	out, ok2 := env.Stdout.(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return func() {}
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	resize := make(chan kit.TerminalSize, 1)
	send := func() {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width == 0 { // A terminal that nobody sees has no size.
			return
		}
		select { // Only the last size counts.
		case <-resize:
		default:
		}
		resize <- kit.TerminalSize{Width: uint16(width), Height: uint16(height)}
	}
	send()
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for range changed {
			send()
		}
	}()
	env.Terminal = &kit.Terminal{Resize: resize}
	return func() {
		signal.Stop(changed)
		close(changed)
		_ = term.Restore(int(in.Fd()), before)
	}
}
