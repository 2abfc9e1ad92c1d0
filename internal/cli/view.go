package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/server"
	pages "github.com/aiopslab/aiopslab/server/page"
)

// viewAddr is beside the server's.
const viewAddr = "127.0.0.1:1819"

type viewFlags struct {
	addr, token string
}

func newView(s *State) *cobra.Command {
	f := &viewFlags{}
	c := &cobra.Command{
		Use:   "view [DIR]",
		Short: "Look at runs in a browser",
		Long: `Serve pages about the runs whose records are in a directory and in those below
it, without DIR in 'results': a table, a matrix and a leaderboard of them; a run
with its transcript and what users got beside it, also while it is under way; two
runs or two agents compared; and the problems. docs/page.md tells more.

Open the link that it prints. The key in it is drawn anew each time: an agent on
the same machine, which could reach the address, does not know it. An address that
other machines reach needs a token, which opens the pages as well.

Nothing is written but the index of the records, in your cache directory.`,
		Example: `  aiopslab view
  aiopslab view campaign --addr 127.0.0.1:0`,
		Args: atMostOne("a directory"),
		RunE: func(c *cobra.Command, args []string) error { return viewRuns(c.Context(), s, f, dirArg(args)) },
	}
	c.Flags().StringVar(&f.addr, "addr", viewAddr, "where to listen; port 0 is any")
	c.Flags().StringVar(&f.token, "token-file", "",
		"`file` with a token that opens the pages; otherwise AIOPSLAB_TOKEN, or none")
	return c
}

func viewRuns(ctx context.Context, s *State, f *viewFlags, dir string) error {
	if info, err := os.Stat(dir); err != nil {
		return fail(ExitUsage, err, recordsHint)
	} else if !info.IsDir() {
		return fail(ExitUsage, fmt.Errorf("%s is not a directory", dir), recordsHint)
	}
	token, err := readToken(s, f.token)
	if err != nil {
		return err
	}
	loopback, err := checkAddr(f.addr, token, "--token-file or AIOPSLAB_TOKEN")
	if err != nil {
		return err
	}
	library, err := s.library()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		return fail(ExitError, err, "Choose another with --addr.")
	}
	defer l.Close()
	site := pages.New(pages.Options{Dir: dir, Cache: indexCache(), Library: library, Token: token})
	defer site.Close()
	ctx, cancel := untilSignal(ctx, func() {})
	defer cancel()
	log := s.logger("info", token)
	web := &http.Server{
		Handler: server.ProtectPages(site, loopback), MaxHeaderBytes: maxHeader, ReadHeaderTimeout: answerTimeout,
		ReadTimeout: answerTimeout, IdleTimeout: idleTimeout, ErrorLog: logs.ErrorLog(log, slog.LevelWarn, "view"),
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	fmt.Fprintf(s.Stdout, "open http://%s%s\n", l.Addr(), site.Link())
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	site.Close()
	last, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if web.Shutdown(last) != nil {
		_ = web.Close()
	}
	return err
}

// readToken is the token of a file or, without one, of the environment.
func readToken(s *State, file string) (string, error) {
	if file == "" {
		return envToken(s)
	}
	b, err := os.ReadFile(file)
	token := strings.TrimSpace(string(b))
	if err == nil && token == "" {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", fail(ExitUsage, fmt.Errorf("--token-file: %w", err), "")
	}
	return token, nil
}
