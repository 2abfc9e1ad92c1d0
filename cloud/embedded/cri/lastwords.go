package cri

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// maxLastWords is how much of a log the kubelet looks at for a termination message.
const maxLastWords = 2048

// hostFile names a file on the host. The kubelet's code reads termination messages, and the end of
// the log of a container that failed, from the disk, and a program may have a scratch directory
// there; everything else of a container is in memory.
func (c *Container) hostFile(suffix string) string {
	return filepath.Join(c.runtime.cfg.Dir, c.id+suffix)
}

// saveLastWords writes these files. Losing one only loses a message.
func (c *Container) saveLastWords() {
	if at := c.terminationPath(); at != "" {
		if b, err := c.runtime.env().ReadFile(at); err == nil && len(b) > 0 {
			_ = os.WriteFile(c.hostFile(".message"), b, 0o600)
		}
	}
	if c.exitCode == 0 {
		return
	}
	var b bytes.Buffer
	if err := c.log.Read(context.Background(), &b, LogOptions{Tail: 100}); err != nil || b.Len() == 0 {
		return
	}
	text := b.Bytes()
	text = text[max(0, len(text)-maxLastWords):]
	var lines bytes.Buffer
	stamp := c.finished.UTC().Format(logTime)
	for line := range bytes.Lines(text) {
		tag := fullLine
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if !whole {
			tag = partialLine
		}
		fmt.Fprintf(&lines, "%s stdout %s %s\n", stamp, tag, text)
	}
	_ = os.WriteFile(c.hostFile(".log"), lines.Bytes(), 0o600)
}

// terminationPath is where on the node the container's termination message is.
func (c *Container) terminationPath() string {
	want := c.config.Annotations["io.kubernetes.container.terminationMessagePath"]
	for _, m := range c.config.Mounts {
		if want != "" && m.ContainerPath == want {
			return m.HostPath
		}
	}
	return ""
}
