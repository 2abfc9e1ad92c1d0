package agnhost

import (
	_ "embed"
	"maps"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	agnhostMemory = 12 << 20
	agnhostSize   = 54 << 20
)

// Image is agnhost. The tools, by name, are what the image has in /bin: a shell, curl, dig, nc. If a
// DNS server is among them, "coredns", it is at the root, where tests run it.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/agnhost": Main,
		// Tests override the entry point with a second name of the same program.
		"/agnhost-2": Main,
	}
	for name, tool := range tools {
		dir := "/bin/"
		if name == "coredns" {
			dir = "/"
		}
		programs[dir+name] = tool
	}
	cert, key, err := localhostCertificate()
	if err != nil {
		panic("agnhost: cannot make a certificate: " + err.Error())
	}
	return kit.Image{
		Names:      []string{"registry.k8s.io/e2e-test-images/agnhost"},
		Entrypoint: []string{"/agnhost"},
		Cmd:        []string{"pause"},
		Vars:       map[string]string{"PATH": kit.DefaultPath},
		Programs:   programs,
		Files: map[string]string{
			"/uploads/":      "",
			"/tmp/":          "",
			"/root/":         "",
			"/localhost.crt": string(cert),
			"/localhost.key": string(key),
			"/etc/os-release": `NAME="Alpine Linux"
ID=alpine
VERSION_ID=3.22.2
PRETTY_NAME="Alpine Linux v3.22"
HOME_URL="https://alpinelinux.org/"
BUG_REPORT_URL="https://gitlab.alpinelinux.org/alpine/aports/-/issues"
`,
			// Tests look for this user, and for the group it is in besides its own.
			"/etc/passwd": `root:x:0:0:root:/root:/bin/sh
bin:x:1:1:bin:/bin:/sbin/nologin
daemon:x:2:2:daemon:/sbin:/sbin/nologin
nobody:x:65534:65534:nobody:/:/sbin/nologin
user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh
`,
			"/etc/group": `root:x:0:root
bin:x:1:root,bin,daemon
daemon:x:2:root,bin,daemon
nobody:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
`,
			"/home/user-defined-in-image/": "",
		},
		Memory: agnhostMemory,
		Size:   agnhostSize,
	}
}

//go:embed images/nautilus.jpg
var nautilusPicture string

//go:embed images/kitten.jpg
var kittenPicture string

// Nautilus is agnhost with a picture, which it serves.
func Nautilus(tools map[string]kit.Program) kit.Image {
	return withPicture(tools, "nautilus", nautilusPicture)
}

// Kitten is agnhost with another picture: tests replace the one by the other.
func Kitten(tools map[string]kit.Program) kit.Image {
	return withPicture(tools, "kitten", kittenPicture)
}

func withPicture(tools map[string]kit.Program, name, picture string) kit.Image {
	i := Image(tools)
	i.Names = []string{"registry.k8s.io/e2e-test-images/" + name}
	i.Cmd = []string{"test-webserver"}
	i.Files = maps.Clone(i.Files)
	i.Files["/"+name+".jpg"] = picture
	i.Files["/data.json"] = "{\n  \"image\": \"" + name + ".jpg\"\n}\n"
	return i
}
