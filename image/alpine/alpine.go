// Package alpine is the image alpine: BusyBox's shell and tools, and nothing that has to be installed.
package alpine

import "github.com/aiopslab/aiopslab/kit"

// Files are the files of Alpine Linux that people and programs look at.
func Files() map[string]string {
	return map[string]string{
		"/etc/alpine-release": "3.22.2\n",
		"/etc/os-release": "NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.22.2\nPRETTY_NAME=\"Alpine Linux v3.22\"\n" +
			"HOME_URL=\"https://alpinelinux.org/\"\n" +
			"BUG_REPORT_URL=\"https://gitlab.alpinelinux.org/alpine/aports/-/issues\"\n",
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1:bin:/bin:/sbin/nologin\n" +
			"daemon:x:2:2:daemon:/sbin:/sbin/nologin\n" +
			"guest:x:405:100:guest:/dev/null:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
		"/etc/group": "root:x:0:root\nbin:x:1:root,bin,daemon\ndaemon:x:2:root,bin,daemon\nsys:x:3:root,bin\n" +
			"adm:x:4:root,daemon\n" +
			"tty:x:5:\ndisk:x:6:root\nlp:x:7:lp\nkmem:x:9:\nwheel:x:10:root\nfloppy:x:11:root\nmail:x:12:mail\n" +
			"dialout:x:20:root\n" +
			"tape:x:26:root\nvideo:x:27:root\nusers:x:100:games\nnogroup:x:65533:\nnobody:x:65534:\n",
	}
}

// installed are the tools that Alpine has as packages of their own.
var installed = map[string]bool{
	"bash": true, "curl": true, "dig": true, "host": true, "ss": true, "jq": true,
	"column": true,
}

// Image returns the image. It has in /bin the given tools that BusyBox has, too.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{}
	for name, p := range tools {
		if !installed[name] {
			programs["/bin/"+name] = p
		}
	}
	return kit.Image{
		Names:    []string{"alpine"},
		Tags:     `latest|edge|3(\.\d{1,2}(\.\d{1,2})?)?`,
		Cmd:      []string{"/bin/sh"},
		Programs: programs,
		Files:    Files(),
		Memory:   1 << 20,
		Size:     3_800_000,
	}
}
