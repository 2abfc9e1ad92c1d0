package controlplane

import (
	"strings"
	_ "unsafe" // for linkname

	clientversion "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

// Kubernetes' own build stamps its version with -ldflags. Setting the variables here instead keeps
// `go build` and `go test` free of flags that somebody forgets.
//
//go:linkname serverGitVersion k8s.io/component-base/version.gitVersion
//go:linkname serverGitMajor k8s.io/component-base/version.gitMajor
//go:linkname serverGitMinor k8s.io/component-base/version.gitMinor
//go:linkname serverGitTreeState k8s.io/component-base/version.gitTreeState
//go:linkname serverGitCommit k8s.io/component-base/version.gitCommit
//go:linkname serverBuildDate k8s.io/component-base/version.buildDate
//go:linkname clientGitVersion k8s.io/client-go/pkg/version.gitVersion
//go:linkname clientGitMajor k8s.io/client-go/pkg/version.gitMajor
//go:linkname clientGitMinor k8s.io/client-go/pkg/version.gitMinor
//go:linkname clientGitTreeState k8s.io/client-go/pkg/version.gitTreeState
//go:linkname clientGitCommit k8s.io/client-go/pkg/version.gitCommit
//go:linkname clientBuildDate k8s.io/client-go/pkg/version.buildDate
var (
	serverGitVersion, serverGitMajor, serverGitMinor, serverGitTreeState, serverGitCommit, serverBuildDate string
	clientGitVersion, clientGitMajor, clientGitMinor, clientGitTreeState, clientGitCommit, clientBuildDate string
)

// Version is the version of Kubernetes that is linked in, as in go.mod. Build information has it too, except in
// test binaries.
const Version = "v1.37.1"

// The commit of that version and its time. kubectl and the API server say them, as their releases do.
const (
	commit = "f78e722310e50bcaca9276be22276d9e91d91308"
	built  = "2026-09-23T17:06:22Z"
)

func init() {
	_, _ = version.Get(), clientversion.Get() // Both packages are initialised by now.
	parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	serverGitVersion, serverGitMajor, serverGitMinor, serverGitTreeState = Version, parts[0], parts[1], "clean"
	clientGitVersion, clientGitMajor, clientGitMinor, clientGitTreeState = Version, parts[0], parts[1], "clean"
	serverGitCommit, serverBuildDate, clientGitCommit, clientBuildDate = commit, built, commit, built
	if err := version.SetDynamicVersion(Version); err != nil {
		panic(err)
	}
}
