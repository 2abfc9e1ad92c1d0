package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, of Kubernetes too",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(s.Stdout, version())
			return err
		},
	}
}

// version tells what the program was built from and with.
func version() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if rev := settings["vcs.revision"]; rev != "" {
			commit = fmt.Sprintf("commit      %s of %s", rev, settings["vcs.time"])
			if settings["vcs.modified"] == "true" {
				commit += ", modified"
			}
			commit += "\n"
		}
	}
	return fmt.Sprintf("aiopslab    %s\n%sKubernetes  %s\nbuilt with  %s for %s/%s\n", ownVersion(), commit,
		kubernetesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// ownVersion is the version of this program.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
