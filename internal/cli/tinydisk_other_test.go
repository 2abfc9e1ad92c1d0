//go:build !linux

package cli_test

// There are no private mounts.
func tinydisk() int { return 125 }

func tinymount() int { return 125 }
