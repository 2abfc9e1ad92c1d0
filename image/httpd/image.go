package httpd

import "github.com/aiopslab/aiopslab/kit"

// Version is the release that this behaves like.
const Version = "2.4.63"

const (
	prefix  = "/usr/local/apache2"
	docRoot = prefix + "/htdocs"
	pidFile = prefix + "/logs/httpd.pid"
)

// Image is Apache with its default site. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		prefix + "/bin/httpd":             Main,
		"/usr/local/bin/httpd-foreground": Main,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:   []string{"httpd", "registry.k8s.io/e2e-test-images/httpd"},
		Tags:    `latest|alpine|bookworm|2(\.4(\.\d{1,2})?)?(-(alpine(3\.[12]\d)?|bookworm|\d))?`,
		Cmd:     []string{"httpd-foreground"},
		WorkDir: prefix,
		Vars: map[string]string{
			"PATH":          prefix + "/bin:" + kit.DefaultPath,
			"HTTPD_PREFIX":  prefix,
			"HTTPD_VERSION": Version,
		},
		Programs: programs,
		Files: map[string]string{
			docRoot + "/index.html": "<html><body><h1>It works!</h1></body></html>\n",
			prefix + "/logs/":       "",
			"/tmp/":                 "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
				"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group": "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n",
		},
		Memory: 8 << 20,
		Size:   56 << 20,
	}
}
