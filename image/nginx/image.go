package nginx

import (
	_ "embed"

	"github.com/aiopslab/aiopslab/kit"
)

var (
	//go:embed files/nginx.conf
	nginxConf string
	//go:embed files/default.conf
	defaultConf string
	//go:embed files/mime.types
	mimeTypes string
	//go:embed files/index.html
	indexPage string
	//go:embed files/50x.html
	errorPageFile string
)

// Image is nginx with its default site. The tools, by name, are what the image has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	programs := map[string]kit.Program{
		"/usr/sbin/nginx":       Main,
		"/usr/sbin/nginx-debug": Main,
		"/docker-entrypoint.sh": entrypoint,
	}
	for name, tool := range tools {
		programs["/bin/"+name] = tool
	}
	return kit.Image{
		Names:      []string{"nginx", "registry.k8s.io/e2e-test-images/nginx"},
		Tags:       `latest|alpine(-slim)?|perl|(mainline|stable|1(\.([7-9]|[12]\d)(\.1?\d)?)?)(-(alpine(3\.[12]\d)?(-slim|-perl)?|perl|bookworm|bullseye|buster|\d))?`,
		Entrypoint: []string{"/docker-entrypoint.sh"},
		Cmd:        []string{"nginx", "-g", "daemon off;"},
		Vars: map[string]string{
			"PATH":          kit.DefaultPath,
			"NGINX_VERSION": Version,
		},
		Programs: programs,
		Files: map[string]string{
			confDir + "/nginx.conf":            nginxConf,
			confDir + "/conf.d/default.conf":   defaultConf,
			confDir + "/mime.types":            mimeTypes,
			"/usr/share/nginx/html/index.html": indexPage,
			"/usr/share/nginx/html/50x.html":   errorPageFile,
			"/docker-entrypoint.d/":            "",
			logDir + "/":                       "",
			cacheDir + "/":                     "",
			"/run/":                            "",
			"/tmp/":                            "",
			"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" +
				"nginx:x:101:101:nginx:/nonexistent:/bin/false\n" +
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			"/etc/group": "root:x:0:\nnginx:x:101:\nnogroup:x:65534:\n",
			"/etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n" +
				"VERSION_ID=\"12\"\nID=debian\n",
		},
		Memory: 5 << 20,
		Size:   72 << 20,
	}
}
