//go:build !linux

package embedded

func releaseCode() {}
