// Package vfs is a Unix file system in memory: owners, permissions, links, mounts and disks that
// fill up, with the kernel's errors, and nothing of the host's files in reach.
//
// A [Tree] holds files, as a formatted volume does. A [Namespace] is what a container sees: a root
// tree with other trees, or parts of them, mounted on it. [Namespace.As] gives the view of one user
// as a [kit.FS].
//
//	root := vfs.NewTree(vfs.Options{Type: "overlay"})
//	ns := vfs.NewNamespace(root)
//	ns.Mount("/data", volume, vfs.MountOptions{})
//	fsys := ns.As(kit.User{})
//
// Trees can be copied cheaply ([Tree.Clone]: contents are shared until written) and turned into
// bytes and back, which is how the embedded cloud takes and restores snapshots. All types are safe
// for concurrent use.
package vfs
