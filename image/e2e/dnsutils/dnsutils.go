package dnsutils

import "github.com/aiopslab/aiopslab/kit"

// Image has the given tools, by name: those for looking up names in /usr/bin, as Debian has them, a
// DNS server, "coredns", at the root, the others in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{}
	for name, tool := range tools {
		dir := "/bin/"
		switch name {
		case "dig", "host", "nslookup", "getent":
			dir = "/usr/bin/"
		case "coredns":
			dir = "/"
		}
		programs[dir+name] = tool
	}
	return kit.Image{
		Names:    []string{"registry.k8s.io/e2e-test-images/glibc-dns-testing"},
		Tags:     `2\.\d\.\d`,
		Cmd:      []string{"/bin/sh"},
		Vars:     map[string]string{"PATH": kit.DefaultPath},
		Programs: programs,
		Files: map[string]string{
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n" +
				"VERSION_ID=\"12\"\nID=debian\n",
			"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group": "root:x:0:\nnogroup:x:65534:\n",
		},
		Memory: 1 << 20,
		Size:   65 << 20,
	}
}
