// Package httpd is the image people write into manifests as "httpd": the Apache web server with its
// default site, as a [kit.Program].
//
// It serves the files under /usr/local/apache2/htdocs on port 80 and logs in the common log format. It reads no
// configuration. Take package nginx where one must be read.
//
//	registry.Register(httpd.Image(tools))
package httpd
