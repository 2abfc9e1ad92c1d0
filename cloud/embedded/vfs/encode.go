package vfs

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io/fs"
	"time"
)

// record is an inode in a saved tree. Children refer to other records by number.
type record struct {
	Mode     fs.FileMode
	UID, GID int
	ModTime  time.Time
	Data     []byte
	Target   string
	Children map[string]int
}

type savedTree struct {
	Type    string
	Records []record // the root first
}

// MarshalBinary saves the tree. Devices are not part of it.
func (t *Tree) MarshalBinary() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := savedTree{Type: t.opts.Type}
	numbers := map[*inode]int{}
	var save func(*inode) int
	save = func(n *inode) int {
		if i, ok := numbers[n]; ok {
			return i
		}
		i := len(s.Records)
		numbers[n] = i
		s.Records = append(s.Records, record{
			Mode: n.mode, UID: n.uid, GID: n.gid, ModTime: n.mtime, Data: n.data,
			Target: n.target,
		})
		if n.children != nil {
			children := make(map[string]int, len(n.children))
			for name, c := range n.children {
				if c.device == nil {
					children[name] = save(c)
				}
			}
			s.Records[i].Children = children
		}
		return i
	}
	save(t.root)
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return nil, fmt.Errorf("save file tree: %w", err)
	}
	return b.Bytes(), nil
}

// UnmarshalBinary reads a tree that MarshalBinary saved. It is on no disk.
func (t *Tree) UnmarshalBinary(b []byte) error {
	r, err := Unmarshal(b, nil)
	if err != nil {
		return err
	}
	t.opts, t.now, t.root, t.used, t.inode = r.opts, r.now, r.root, r.used, r.inode
	return nil
}

// Unmarshal reads a tree that MarshalBinary saved and puts it on the given disk.
func Unmarshal(b []byte, disk *Disk) (*Tree, error) {
	var s savedTree
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return nil, fmt.Errorf("read saved file tree: %w", err)
	}
	if len(s.Records) == 0 || !s.Records[0].Mode.IsDir() {
		return nil, fmt.Errorf("read saved file tree: it has no root directory")
	}
	t := &Tree{opts: Options{Type: s.Type, Disk: disk}, now: time.Now}
	nodes := make([]*inode, len(s.Records))
	for i, r := range s.Records {
		t.inode++
		nodes[i] = &inode{
			id: t.inode, mode: r.Mode, uid: r.UID, gid: r.GID, mtime: r.ModTime, data: r.Data,
			target: r.Target,
		}
		t.used += int64(len(r.Data))
		if r.Mode.IsDir() {
			nodes[i].children = make(map[string]*inode, len(r.Children))
			nodes[i].links = 2
		}
	}
	for i, r := range s.Records {
		for name, c := range r.Children {
			if c <= 0 || c >= len(nodes) {
				return nil, fmt.Errorf("read saved file tree: %q refers to a file that is not there", name)
			}
			nodes[i].children[name] = nodes[c]
			if nodes[c].mode.IsDir() {
				nodes[i].links++
			} else {
				nodes[c].links++
			}
		}
	}
	t.root = nodes[0]
	if disk != nil {
		disk.used.Add(t.used)
	}
	return t, nil
}
