package cri

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// logDir is where a node has the logs of its containers.
const logDir = "/var/log/pods"

// Mount puts into the node's files what its kernel would show there, and the logs of containers.
// All of it is the node's: nothing of the machine that the process runs on is in reach.
func (r *Runtime) Mount() error {
	files := r.cfg.Files
	for _, m := range []struct {
		at    string
		build func() (*vfs.Tree, error)
		opts  vfs.MountOptions
	}{
		{"/dev", func() (*vfs.Tree, error) { return devTree(io.Discard, io.Discard) }, vfs.MountOptions{}},
		{"/proc", proc{r, r.space, files, r.cfg.NodeName, nil}.tree, vfs.MountOptions{}},
		{"/sys", sysTree, vfs.MountOptions{ReadOnly: true}},
		{logDir, func() (*vfs.Tree, error) { return r.logs, nil }, vfs.MountOptions{}},
	} {
		t, err := m.build()
		if err != nil {
			return err
		}
		if err := files.Mount(m.at, t, m.opts); err != nil {
			return err
		}
	}
	return nil
}

// logFile names the file on the node that has the container's log, or is "".
func (c *Container) logFile() string {
	dir, name := c.sandbox.config.LogDirectory, c.config.LogPath
	if !strings.HasPrefix(dir, logDir+"/") || name == "" {
		return ""
	}
	return path.Join(dir, name)
}

// addLogFile lets the log be read where a node has it.
func (c *Container) addLogFile() error {
	file := c.logFile()
	if file == "" {
		return nil
	}
	if err := c.runtime.env().MkdirAll(path.Dir(file), 0o755); err != nil {
		return err
	}
	return c.runtime.logs.AddDevice(strings.TrimPrefix(file, logDir), 0o640, vfs.Device{
		Open: func(int) (vfs.Stream, error) {
			text, _, _, _ := c.log.from(0)
			return &readOnly{bytes.NewReader(text)}, nil
		},
		Size: c.log.length,
	})
}
